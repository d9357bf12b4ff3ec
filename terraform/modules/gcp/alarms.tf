locals {
  # Some alarms wait for a line; the others look at a number of Google's own.
  told = {
    dead-letters = {
      description = "Dead-lettered messages: see `bellhop dead-letters list`."
      line        = "jsonPayload.message=\"Moved a message to the dead letters\""
    }
    # Cloud Run's own line of a request that was answered 5xx would count the same failure again.
    errors = {
      description = "A function failed as a whole: see `bellhop logs`."
      line        = "severity>=ERROR AND NOT log_id(\"run.googleapis.com/requests\")"
    }
    oldest-pending = {
      description = "A timer fires late, or a message fails for long: see `bellhop status` and `bellhop logs`."
      line        = "jsonPayload.message=\"Measured the oldest pending work\" AND jsonPayload.pendingSeconds>${var.oldest_message_minutes * 60}"
    }
    misses = {
      description = "A resync found changes for which no event arrived: see `bellhop doctor`."
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
    # Ingest itself answers 503 where the store is busy, and senders repeat the request.
    ingest-errors = {
      description = "Ingest failed more than ten times in five minutes: see `bellhop logs --stage ingest`."
      metric      = "run.googleapis.com/request_count"
      of          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}-ingest\" AND metric.labels.response_code_class=\"5xx\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 10
    }
    throttles = {
      description = "Cloud Run has no free instance for a function: raise the function's instances, or the project's."
      metric      = "run.googleapis.com/request_count"
      of          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(",", [for each in local.services : "\"${each}\""])}) AND metric.labels.response_code=\"429\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 0
    }
  }

  # A dead man's switch: a schedule that nobody calls reports no trouble of its own. Cloud Monitoring
  # misses only what it has seen once: the first tick after an apply arms it.
  missed = {
    silent = {
      description = "The schedule was not called for ten minutes: nothing is retried or resynced. See the job NAME-tick of Cloud Scheduler."
      metric      = "run.googleapis.com/request_count"
      of          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}-schedule\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
    }
  }

  alarms = merge(local.told, local.counted, local.missed)

  services      = [for stage in keys(local.deployed) : "${var.name}-${stage}"]
  subscriptions = flatten([for inbox in keys(local.inboxes) : ["${var.name}-${inbox}", "${var.name}-${inbox}-dead"]])
}

resource "google_monitoring_alert_policy" "this" {
  for_each = var.alarms ? local.alarms : {}

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

    dynamic "condition_absent" {
      for_each = contains(keys(local.missed), each.key) ? [local.missed[each.key]] : []

      content {
        filter   = "metric.type=\"${condition_absent.value.metric}\" AND ${condition_absent.value.of}"
        duration = "600s"

        aggregations {
          alignment_period     = "60s"
          per_series_aligner   = condition_absent.value.aligner
          cross_series_reducer = condition_absent.value.reducer
        }
      }
    }
  }

  # Each line is logged once: an alarm ends when no other line follows for half an hour.
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
