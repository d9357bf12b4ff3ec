locals {
  queue_metric    = { namespace = "AWS/SQS", dimension = "QueueName" }
  function_metric = { namespace = "AWS/Lambda", dimension = "FunctionName" }

  # Each alarm looks at one number: the sum, or the largest, of a metric of several.
  alarms = {
    dead-letters = merge(local.queue_metric, {
      description = "Messages that Bellhop gave up: see `bellhop dead-letters list`, and events of AWS that it never took: see the queue NAME-events-dead."
      metric      = "ApproximateNumberOfMessagesVisible"
      of          = concat([for queue in aws_sqs_queue.dead : queue.name], aws_sqs_queue.events_dead[*].name)
      stat        = "Maximum"
      expression  = "SUM(METRICS())"
      over        = 0
    })
    oldest-message = merge(local.queue_metric, {
      description = "A message waits for long: see `bellhop status` and `bellhop show failures`."
      metric      = "ApproximateAgeOfOldestMessage"
      of          = concat([for queue in aws_sqs_queue.inbox : queue.name], aws_sqs_queue.events[*].name)
      stat        = "Maximum"
      expression  = "MAX(METRICS())"
      over        = var.oldest_message_minutes * 60
    })
    errors = merge(local.function_metric, {
      description = "A function failed as a whole: see `bellhop logs`."
      metric      = "Errors"
      of          = [for function in aws_lambda_function.stage : function.function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      over        = 0
    })
    throttles = merge(local.function_metric, {
      description = "Lambda has no room for a function: raise the account's concurrency, or the function's."
      metric      = "Throttles"
      of          = [for function in aws_lambda_function.stage : function.function_name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      over        = 0
    })
    misses = {
      namespace   = "Bellhop"
      dimension   = "installation"
      description = "A sweep found what no event had told of: see `bellhop doctor`."
      metric      = "Misses"
      of          = [var.name]
      stat        = "Sum"
      expression  = "SUM(METRICS())"
      over        = 0
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = var.alarms ? local.alarms : {}

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.over
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.notifications
  ok_actions          = var.notifications
  tags                = local.labels

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
        period      = 300
        stat        = each.value.stat
        dimensions  = { (each.value.dimension) = metric_query.value }
      }
    }
  }
}
