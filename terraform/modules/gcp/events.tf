# Events of Google that count as CloudEvents of a cluster: triggers of Eventarc send them to a function
# of their own, made of ingest's package. It is not the one that clusters send to, which anybody may
# call: here Google sees to it that nobody but the triggers does. Without rules nothing of it is there.
locals {
  hearing = toset(length(var.event_rules) > 0 ? ["events"] : [])
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

  depends_on = [google_cloud_run_v2_service_iam_member.events, google_project_iam_member.events]
}
