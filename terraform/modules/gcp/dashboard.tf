locals {
  # A graph shows metrics, of which resources, put together how, and by which label.
  graphs = [
    { title = "Events", sets = [{ metric = "logging.googleapis.com/user/${google_logging_metric.lines.name}", of = local.revisions, aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["metric.label.what"] }] },
    { title = "Requests", sets = [{ metric = "run.googleapis.com/request_count", of = local.revisions, aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["metric.label.response_code_class"] }] },
    { title = "From event to applied (p50, p99)", sets = [for each in ["50", "99"] : { metric = "logging.googleapis.com/user/${google_logging_metric.latency.name}", of = local.revisions, aligner = "ALIGN_DELTA", reducer = "REDUCE_PERCENTILE_${each}", by = [] }] },
    { title = "Stages of promotions (p50, p99)", sets = [for each in ["50", "99"] : { metric = "logging.googleapis.com/user/${google_logging_metric.stages.name}", of = local.revisions, aligner = "ALIGN_DELTA", reducer = "REDUCE_PERCENTILE_${each}", by = [] }] },
    { title = "Clusters", sets = [{ metric = "logging.googleapis.com/user/${google_logging_metric.alerts.name}", of = local.revisions, aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["metric.label.alert", "metric.label.cluster"] }] },
    { title = "Waiting", sets = [{ metric = "pubsub.googleapis.com/subscription/num_undelivered_messages", of = local.inbox_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.label.subscription_id"] }] },
    { title = "Oldest message", sets = [{ metric = "pubsub.googleapis.com/subscription/oldest_unacked_message_age", of = local.inbox_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.label.subscription_id"] }] },
    { title = "Dead letters", sets = [{ metric = "pubsub.googleapis.com/subscription/num_undelivered_messages", of = local.dead_queues, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", by = ["resource.label.subscription_id"] }] },
    { title = "Errors", sets = [{ metric = "logging.googleapis.com/log_entry_count", of = "${local.revisions} AND metric.labels.severity=\"ERROR\" AND metric.labels.log!=\"run.googleapis.com/requests\"", aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["resource.label.service_name"] }] },
    { title = "Time", sets = [{ metric = "run.googleapis.com/request_latencies", of = local.revisions, aligner = "ALIGN_PERCENTILE_99", reducer = "REDUCE_MAX", by = ["resource.label.service_name"] }] },
    { title = "At once", sets = [{ metric = "run.googleapis.com/container/instance_count", of = local.revisions, aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", by = ["resource.label.service_name"] }] },
    { title = "Refused requests", sets = [{ metric = "run.googleapis.com/request_count", of = "${local.revisions} AND metric.labels.response_code_class=\"4xx\"", aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["resource.label.service_name", "metric.label.response_code"] }] },
    # Shown, and no alarm: the functions repeat these requests.
    { title = "Refused by Firestore", sets = [{ metric = "firestore.googleapis.com/api/request_count", of = "resource.type=\"firestore.googleapis.com/Database\" AND resource.labels.database_id=\"${google_firestore_database.records.name}\" AND metric.labels.response_code=one_of(\"RESOURCE_EXHAUSTED\",\"ABORTED\")", aligner = "ALIGN_SUM", reducer = "REDUCE_SUM", by = ["metric.label.response_code"] }] },
  ]

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
      tiles = [for place, graph in local.graphs : {
        xPos   = 6 * (place % 2)
        yPos   = 4 * floor(place / 2)
        width  = 6
        height = 4
        widget = {
          title = graph.title
          xyChart = {
            dataSets = [for each in graph.sets : {
              plotType = "LINE"
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = "metric.type=\"${each.metric}\" AND ${each.of}"
                  aggregation = {
                    alignmentPeriod    = "300s"
                    perSeriesAligner   = each.aligner
                    crossSeriesReducer = each.reducer
                    groupByFields      = each.by
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
