locals {
  # Title, and what it shows: a metric, of which resources, put together how, and by which label.
  graphs = {
    "1 Events"         = { metric = "logging.googleapis.com/user/${google_logging_metric.lines.name}", of = local.revisions, aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = "metric.label.what" }
    "2 Requests"       = { metric = "run.googleapis.com/request_count", of = local.revisions, aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = "metric.label.response_code_class" }
    "3 Waiting"        = { metric = "pubsub.googleapis.com/subscription/num_undelivered_messages", of = local.inbox_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = "resource.label.subscription_id" }
    "4 Oldest message" = { metric = "pubsub.googleapis.com/subscription/oldest_unacked_message_age", of = local.inbox_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = "resource.label.subscription_id" }
    "5 Dead letters"   = { metric = "pubsub.googleapis.com/subscription/num_undelivered_messages", of = local.dead_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = "resource.label.subscription_id" }
    "6 Errors"         = { metric = "logging.googleapis.com/log_entry_count", of = "${local.revisions} AND metric.labels.severity=\"ERROR\" AND metric.labels.log!=\"run.googleapis.com/requests\"", aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = "resource.label.service_name" }
    "7 Time"           = { metric = "run.googleapis.com/request_latencies", of = local.revisions, aligner = "ALIGN_PERCENTILE_99", reducer = "REDUCE_MAX", by = "resource.label.service_name" }
    "8 At once"        = { metric = "run.googleapis.com/container/instance_count", of = local.revisions, aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = "resource.label.service_name" }
  }

  revisions    = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(",", [for each in local.services : "\"${each}\""])})"
  inbox_queues = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=one_of(${join(",", [for each in google_pubsub_subscription.inbox : "\"${each.name}\""])})"
  dead_queues  = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=one_of(${join(",", [for each in google_pubsub_subscription.dead : "\"${each.name}\""])})"
}

resource "google_monitoring_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  project = local.with.monitoring

  dashboard_json = jsonencode({
    displayName = var.name
    labels      = { bellhop = var.name }
    mosaicLayout = {
      columns = 12
      tiles = [for place, title in keys(local.graphs) : {
        xPos   = 6 * (place % 2)
        yPos   = 4 * floor(place / 2)
        width  = 6
        height = 4
        widget = {
          title = substr(title, 2, -1)
          xyChart = {
            dataSets = [{
              plotType = "LINE"
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = "metric.type=\"${local.graphs[title].metric}\" AND ${local.graphs[title].of}"
                  aggregation = {
                    alignmentPeriod    = "300s"
                    perSeriesAligner   = local.graphs[title].aligner
                    crossSeriesReducer = local.graphs[title].reducer
                    groupByFields      = [local.graphs[title].by]
                  }
                }
              }
            }]
          }
        }
      }]
    }
  })
}
