locals {
  # Some alarms wait for a line; the others look at a number of Google's own.
  told = {
    dead-letters = {
      description = "Messages that Bellhop gave up: see `bellhop dead-letters list`."
      line        = "jsonPayload.message=\"Moved a message to the dead letters\""
    }
    errors = {
      description = "A function failed as a whole: see `bellhop logs`."
      line        = "severity>=ERROR"
    }
    misses = {
      description = "A sweep found what no event had told of: see `bellhop doctor`."
      line        = "jsonPayload.what=\"missed\""
    }
  }

  counted = {
    oldest-message = {
      description = "A message waits for long: see `bellhop status` and `bellhop show failures`."
      metric      = "pubsub.googleapis.com/subscription/oldest_unacked_message_age"
      of          = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=one_of(${join(",", [for each in local.subscriptions : "\"${each}\""])})"
      aligner     = "ALIGN_MAX"
      reducer     = "REDUCE_MAX"
      over        = var.oldest_message_minutes * 60
    }
    throttles = {
      description = "Cloud Run has no room for a function: raise the function's instances, or the project's."
      metric      = "run.googleapis.com/request_count"
      of          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(",", [for each in local.services : "\"${each}\""])}) AND metric.labels.response_code=\"429\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 0
    }
  }

  services      = [for stage in keys(local.deployed) : "${var.name}-${stage}"]
  subscriptions = flatten([for inbox in keys(local.inboxes) : ["${var.name}-${inbox}", "${var.name}-${inbox}-dead"]])
}

resource "google_monitoring_alert_policy" "this" {
  for_each = var.alarms ? merge(local.told, local.counted) : {}

  project               = local.with.monitoring
  display_name          = "${var.name}-${each.key}"
  combiner              = "OR"
  notification_channels = var.notifications
  user_labels           = local.labels

  documentation {
    content   = each.value.description
    mime_type = "text/markdown"
  }

  conditions {
    display_name = each.key

    dynamic "condition_matched_log" {
      for_each = contains(keys(local.told), each.key) ? [local.told[each.key]] : []

      content {
        filter = "${local.lines} AND ${condition_matched_log.value.line}"
      }
    }

    dynamic "condition_threshold" {
      for_each = contains(keys(local.counted), each.key) ? [local.counted[each.key]] : []

      content {
        filter          = "metric.type=\"${condition_threshold.value.metric}\" AND ${condition_threshold.value.of}"
        comparison      = "COMPARISON_GT"
        threshold_value = condition_threshold.value.over
        duration        = "0s"

        aggregations {
          alignment_period     = "300s"
          per_series_aligner   = condition_threshold.value.aligner
          cross_series_reducer = condition_threshold.value.reducer
        }
      }
    }
  }

  # A line comes once: what it told of is over when no other has come for half an hour.
  alert_strategy {
    auto_close = "1800s"

    dynamic "notification_rate_limit" {
      for_each = contains(keys(local.told), each.key) ? [1] : []

      content {
        period = "300s"
      }
    }
  }
}
