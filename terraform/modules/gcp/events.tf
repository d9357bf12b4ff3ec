# Events of Google that count as CloudEvents of a cluster: triggers of Eventarc send them to a function
# of their own, made of ingest's package. It is not the one that clusters send to, which anybody may
# call: here Google sees to it that nobody but the triggers does. Without rules nothing of it is there.
locals {
  hearing = toset(length(var.event_rules) > 0 ? ["events"] : [])

  storage_rules = [for each in var.event_rules : each if startswith(lookup(each.matching, "type", ""), "google.cloud.storage.object.v1.")]
}

resource "google_project_iam_member" "events" {
  for_each = local.hearing

  project = local.project
  role    = "roles/eventarc.eventReceiver"
  member  = google_service_account.this[each.key].member
}

resource "google_cloud_run_v2_service_iam_member" "events" {
  for_each = local.hearing

  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage[each.key].name
  role     = "roles/run.invoker"
  member   = google_service_account.this[each.key].member
}

# Cloud Storage publishes the events of buckets itself. The condition always holds: it makes this a
# binding of its own, so that a destroy leaves the same grant that others of the project need.
resource "google_project_iam_member" "bucket_events" {
  count = min(1, length(local.storage_rules))

  project = local.project
  role    = "roles/pubsub.publisher"
  member  = "serviceAccount:service-${local.number}@gs-project-accounts.iam.gserviceaccount.com"

  condition {
    title      = "${var.name}-events"
    expression = "request.time > timestamp(\"2020-01-01T00:00:00Z\")"
  }

  depends_on = [data.google_storage_project_service_account.agent]
}

# The path says for which cluster an event counts.
resource "google_eventarc_trigger" "this" {
  for_each = var.event_rules

  project         = local.with.eventarc
  location        = coalesce(each.value.location, local.region)
  name            = "${var.name}-${each.key}"
  service_account = google_service_account.this["events"].email
  labels          = local.labels

  dynamic "matching_criteria" {
    for_each = each.value.matching

    content {
      attribute = matching_criteria.key
      value     = matching_criteria.value
      operator  = strcontains(matching_criteria.value, "*") ? "match-path-pattern" : null
    }
  }

  destination {
    cloud_run_service {
      service = google_cloudfunctions2_function.stage["events"].name
      region  = local.region
      path    = "/clusters/${each.value.cluster}"
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.events, google_project_service_identity.agent]
}
