# People have their grants next to the functions' in access.tf, on what is this installation's by its
# name; here is what they have beside these. A reader changes nothing, and reads no kubeconfig.
locals {
  people    = merge({ for each in var.readers : each => "reader" }, { for each in var.operators : each => "operator" })
  operators = [for who, kind in local.people : who if kind == "operator"]

  # Principals by the names that grants have for them.
  members = merge({ for name, each in google_service_account.this : name => each.member }, { for who in keys(local.people) : who => who })
}

# Google has no narrower place than the project for lines in the project's own bucket.
resource "google_project_iam_member" "logs" {
  for_each = local.people

  project = local.project
  role    = google_project_iam_custom_role.this[local.own_bucket == 0 ? "read_logs" : "read_view"].name
  member  = each.key

  dynamic "condition" {
    for_each = google_logging_project_bucket_config.own

    content {
      title      = "${var.name}-logs"
      expression = "resource.name == \"projects/${condition.value.project}/locations/${condition.value.location}/buckets/${condition.value.bucket_id}/views/_AllLogs\""
    }
  }
}

# Nor for metrics.
resource "google_project_iam_member" "metrics" {
  for_each = local.people

  project = local.project
  role    = google_project_iam_custom_role.this["read_metrics"].name
  member  = each.key
}
