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

  five_minutes = { period = "300s" }

  counted = {
    oldest-message = merge(local.five_minutes, {
      description = "A message waits for long: see `bellhop status` and `bellhop show failures`."
      metric      = "pubsub.googleapis.com/subscription/oldest_unacked_message_age"
      of          = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=one_of(${join(",", [for each in local.subscriptions : "\"${each}\""])})"
      aligner     = "ALIGN_MAX"
      reducer     = "REDUCE_MAX"
      over        = var.oldest_message_minutes * 60
    })
    # Ingest itself answers 503 where the store is busy, and senders repeat the request.
    ingest-errors = merge(local.five_minutes, {
      description = "Ingest failed more than ten times in five minutes: see `bellhop logs --stage ingest`."
      metric      = "run.googleapis.com/request_count"
      of          = "${local.ingest_requests} AND metric.labels.response_code_class=\"5xx\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 10
    })
    throttles = merge(local.five_minutes, {
      description = "Cloud Run has no free instance for a function: raise the function's instances, or the project's."
      metric      = "run.googleapis.com/request_count"
      of          = "${local.revisions} AND metric.labels.response_code=\"429\""
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 0
    })
    requests-refused = merge(local.five_minutes, {
      description = "More than ten requests of senders were refused in 15 minutes: `bellhop show failures` names the clusters."
      metric      = "run.googleapis.com/request_count"
      of          = "${local.ingest_requests} AND metric.labels.response_code=one_of(\"401\",\"403\")"
      aligner     = "ALIGN_SUM"
      reducer     = "REDUCE_SUM"
      over        = 10
      period      = "900s"
    })
  }

  # In PromQL, since Cloud Monitoring refuses any other condition on a metric of lines that is not
  # there yet, which takes minutes after it was created. The incident has the labels of the series:
  # ticks write a line a minute for each cluster that an alert names, and each has its incident.
  queried = {
    clusters-unreachable = {
      description = "A cluster does not answer, or refuses the stored credentials. The label `cluster` names it, and `bellhop get clusters` names all of them."
      query       = "sum by (cluster) (increase(${local.series.alerts}{${local.of_functions},alert=\"ClustersUnreachable\"}[5m])) > 0"
      duration    = "600s"
    }
    clusters-silent = {
      description = "A cluster answers, but sends no events. The label `cluster` names it, and `bellhop get clusters` names all of them."
      query       = "sum by (cluster) (increase(${local.series.alerts}{${local.of_functions},alert=\"ClustersSilent\"}[5m])) > 0"
      duration    = "600s"
    }
    credentials-expire = {
      description = "The credentials of a cluster expire within a week. The label `cluster` names it, and `bellhop status` names all of them."
      query       = "sum by (cluster) (increase(${local.series.alerts}{${local.of_functions},alert=\"CredentialsExpiring\"}[5m])) > 0"
      duration    = "600s"
    }
    deletions-held = {
      description = "The deletion guard holds deletions: see `bellhop get held`. The label `cluster` names the cluster, unless a change of manifests is held."
      query       = "sum by (cluster) (increase(${local.series.alerts}{${local.of_functions},alert=\"DeletionsHeld\"}[5m])) > 0"
      duration    = "300s"
    }
    promotions-stalled = {
      description = "Releases of promotions are stopped at a stage: `bellhop show failures` names the stages and causes."
      query       = "sum(increase(${local.series.alerts}{${local.of_functions},alert=\"PromotionsStalled\"}[5m])) > 0"
      duration    = "600s"
    }
    steps-fail = {
      description = "Steps have kept failing for an hour: `bellhop show failures` names clusters and causes."
      query       = "sum(increase(${local.series.lines}{${local.of_functions},what=\"failed\"}[30m])) > 0"
      duration    = "1800s"
    }
    slow = {
      description = "One event in a hundred takes a minute or longer until it is applied: see the dashboard, and `bellhop status`."
      query       = "histogram_quantile(0.99, sum by (le) (increase(${local.series.latency}_bucket{${local.of_functions}}[10m]))) > 60000"
      duration    = "600s"
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

  alarms = merge(local.told, local.counted, local.queried, local.missed)

  ingest_requests = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}-ingest\""

  # Names of metrics of lines in PromQL, which has no slashes and hyphens in names.
  series = {
    for kind, metric in { alerts = google_logging_metric.alerts, latency = google_logging_metric.latency, lines = google_logging_metric.lines } :
    kind => "logging_googleapis_com:user_${replace(metric.name, "-", "_")}"
  }
  of_functions = "monitored_resource=\"cloud_run_revision\""

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
          alignment_period     = condition_threshold.value.period
          per_series_aligner   = condition_threshold.value.aligner
          cross_series_reducer = condition_threshold.value.reducer
        }
      }
    }

    dynamic "condition_prometheus_query_language" {
      for_each = contains(keys(local.queried), each.key) ? [local.queried[each.key]] : []

      content {
        query                     = condition_prometheus_query_language.value.query
        duration                  = condition_prometheus_query_language.value.duration
        evaluation_interval       = "60s"
        disable_metric_validation = true
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
