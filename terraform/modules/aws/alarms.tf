locals {
  queue_metric    = { namespace = "AWS/SQS", dimension = "QueueName" }
  function_metric = { namespace = "AWS/Lambda", dimension = "FunctionName" }
  own_metric      = { namespace = "Bellhop", dimension = "installation" }

  # An alarm is quiet where nothing is measured, and looks at five minutes.
  above = { comparison = "GreaterThanThreshold", missing = "notBreaching", periods = 1, period = 300 }

  # Each tick reports these, and nothing while there are none.
  reported = merge(local.above, local.own_metric, { of = [local.table], stat = "Maximum", expression = "MAX(METRICS())", threshold = 0 })

  # Each alarm looks at one number: the sum, or the largest, of a metric of several.
  alarms = {
    dead-letters = merge(local.above, local.queue_metric, {
      description = "Dead-lettered messages: see `bellhop dead-letters list`, and events of AWS that it never took: see the queue NAME-events-dead."
      metric      = "ApproximateNumberOfMessagesVisible"
      of          = concat([for queue in aws_sqs_queue.dead : queue.name], aws_sqs_queue.events_dead[*].name)
      stat        = "Maximum"
      expression  = "SUM(METRICS())"
      threshold   = 0
    })
    oldest-message = merge(local.above, local.queue_metric, {
      description = "A message waits for long: see `bellhop status` and `bellhop show failures`."
      metric      = "ApproximateAgeOfOldestMessage"
      of          = concat([for queue in aws_sqs_queue.inbox : queue.name], aws_sqs_queue.events[*].name)
      stat        = "Maximum"
      expression  = "MAX(METRICS())"
      threshold   = var.oldest_message_minutes * 60
    })
    # SQS leaves out of the age above what was received three times.
    oldest-pending = merge(local.above, local.own_metric, {
      description = "A timer fires late, or a message fails for long: see `bellhop status` and `bellhop logs`."
      metric      = "OldestPending"
      of          = [local.table]
      stat        = "Maximum"
      expression  = "MAX(METRICS())"
      threshold   = var.oldest_message_minutes * 60
    })
    errors = merge(local.above, local.function_metric, {
      description = "A function failed as a whole: see `bellhop logs`."
      metric      = "Errors"
      of          = [for function in aws_lambda_function.stage : function.function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 0
    })
    throttles = merge(local.above, local.function_metric, {
      description = "Lambda throttles a function: raise the account's concurrency, or the function's."
      metric      = "Throttles"
      of          = [for function in aws_lambda_function.stage : function.function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 0
    })
    # Such a message is not handed over, and no function reports it.
    recursion = merge(local.above, local.function_metric, {
      description = "Lambda refused messages that it takes for a loop: the function's recursive loop detection was set to Terminate. Apply again."
      metric      = "RecursiveInvocationsDropped"
      of          = [for function in aws_lambda_function_recursion_config.this : function.function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 0
    })
    # A dead man's switch: a schedule that nobody invokes reports no trouble of its own. Lambda has
    # no data point of a minute without invocations, so the alarm is in INSUFFICIENT_DATA then, and
    # notifies of that. A new alarm begins in that state, and notifies only of leaving it: the first
    # tick arms it. If missing data were breaching, each first apply would alarm.
    silent = merge(local.function_metric, {
      description = "The schedule was not invoked for ten minutes: nothing is retried or resynced. See the EventBridge schedule NAME-tick. The alarm is in the state INSUFFICIENT_DATA then."
      metric      = "Invocations"
      of          = [aws_lambda_function.stage["schedule"].function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      comparison  = "LessThanThreshold"
      threshold   = 1
      missing     = "missing"
      period      = 60
      periods     = 10
    })
    # Ingest itself answers 503 where the store is busy, and senders repeat the request.
    ingest-errors = merge(local.above, {
      namespace   = "AWS/ApiGateway"
      dimension   = local.ingest_metric.dimension
      description = "Ingest failed more than ten times in five minutes: see `bellhop logs --stage ingest`, and the log group of the API."
      metric      = local.ingest_metric.failures
      of          = [local.ingest_metric.value]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 10
    })
    misses = merge(local.above, local.own_metric, {
      description = "A resync found changes for which no event arrived: see `bellhop doctor`."
      metric      = "Misses"
      of          = [local.table]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 0
    })
    clusters-unreachable = merge(local.reported, {
      description = "Clusters do not answer, or refuse the stored credentials: `bellhop get clusters` names them, and so does the graph Clusters of the dashboard."
      metric      = "ClustersUnreachable"
      periods     = 2
    })
    clusters-silent = merge(local.reported, {
      description = "Clusters answer, but send no events: `bellhop get clusters` names them, and so does the graph Clusters of the dashboard."
      metric      = "ClustersSilent"
      periods     = 2
    })
    credentials-expire = merge(local.reported, {
      description = "The credentials of clusters expire within a week: `bellhop status` names them, and so does the graph Clusters of the dashboard."
      metric      = "CredentialsExpiring"
      periods     = 2
    })
    deletions-held = merge(local.reported, {
      description = "The deletion guard holds deletions: see `bellhop get held`."
      metric      = "DeletionsHeld"
    })
    promotions-stalled = merge(local.reported, {
      description = "Releases of promotions are stopped at a stage: `bellhop show failures` names the stages and causes."
      metric      = "PromotionsStalled"
      periods     = 2
    })
    steps-fail = merge(local.above, local.own_metric, {
      description = "Steps have kept failing for an hour: `bellhop show failures` names clusters and causes."
      metric      = "Failed"
      of          = [local.table]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 0
      period      = 1800
      periods     = 2
    })
    requests-refused = merge(local.above, local.own_metric, {
      description = "More than ten requests of senders were refused in 15 minutes: `bellhop show failures` names the clusters."
      metric      = "Refused"
      of          = [local.table]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      threshold   = 10
      period      = 900
    })
    slow = merge(local.above, local.own_metric, {
      description = "One event in a hundred takes a minute or longer until it is applied: see the dashboard, and `bellhop status`."
      metric      = "Latency"
      of          = [local.table]
      stat        = "p99"
      expression  = "MAX(METRICS())"
      threshold   = 60000
      periods     = 2
    })
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = var.alarms ? local.alarms : {}

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  evaluation_periods  = each.value.periods
  treat_missing_data  = each.value.missing
  alarm_actions       = var.notifications
  ok_actions          = var.notifications
  tags                = local.labels

  insufficient_data_actions = each.value.missing == "missing" ? var.notifications : null

  metric_query {
    id          = "all"
    label       = each.value.metric
    expression  = each.value.expression
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.of

    content {
      id = "m${metric_query.key}"

      metric {
        namespace   = each.value.namespace
        metric_name = each.value.metric
        period      = each.value.period
        stat        = each.value.stat
        dimensions  = { (each.value.dimension) = metric_query.value }
      }
    }
  }
}
