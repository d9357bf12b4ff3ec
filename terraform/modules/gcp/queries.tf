# The filters of docs/how-to/view-events-in-cloud-logging.md, word by word: a saved query costs
# nothing.
locals {
  queries = {
    "All decisions for one cluster"                                            = <<-EOT
      labels.cluster="prod/eu-1"
      jsonPayload.what:*
    EOT
    "All results of one EventSource and of one profile"                        = <<-EOT
      labels.eventsource="web" OR labels.profile="p"
    EOT
    "All results of one event, by the trace that `bellhop show events` prints" = <<-EOT
      trace:"3f9a"
    EOT
    "Failures"                                                                 = <<-EOT
      jsonPayload.what="failed"
    EOT
    "Changes that reached their cluster more than two seconds after the event" = <<-EOT
      jsonPayload.what="applied" AND jsonPayload.since_ring_ms>2000
    EOT
    "Changes that only resyncs found"                                          = <<-EOT
      jsonPayload.what="missed"
    EOT
    "Requests that ingest refused"                                             = <<-EOT
      jsonPayload.message="Refused a request"
    EOT
    "Messages that became dead letters"                                        = <<-EOT
      jsonPayload.message="Moved a message to the dead letters"
    EOT
    "Unexpected errors, and functions that were terminated"                    = <<-EOT
      resource.type="cloud_run_revision" AND severity>=ERROR
    EOT
  }
}

resource "google_logging_saved_query" "this" {
  for_each = var.dashboard ? local.queries : {}

  parent       = "projects/${local.with.logging}"
  location     = "global"
  name         = "${var.name}-${trim(replace(lower(each.key), "/[^a-z0-9]+/", "-"), "-")}"
  display_name = "${var.name}: ${each.key}"
  visibility   = "SHARED"

  logging_query {
    filter = trimspace(each.value)
  }
}
