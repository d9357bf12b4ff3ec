locals {
  # Each metric is a namespace, a name, a dimension and its value, or an expression.
  graphs = [
    { title = "Events", stat = "Sum", metrics = [for each in ["Events", "Matched", "Applied", "Failed"] : ["Bellhop", each, "installation", local.table]] },
    { title = "Misses", stat = "Sum", metrics = [["Bellhop", "Misses", "installation", local.table]] },
    { title = "From event to applied, in milliseconds", stat = "p99", metrics = [for each in ["p50", "p99"] : ["Bellhop", "Latency", "installation", local.table, { stat = each, label = each }]] },
    { title = "Stages of promotions, in seconds", stat = "p50", metrics = [for each in ["p50", "Maximum"] : ["Bellhop", "PromotionStageSeconds", "installation", local.table, { stat = each, label = each }]] },
    # A metric of each cluster that an alert names, while it is so.
    { title = "Clusters", stat = "Maximum", metrics = [[{ expression = "SEARCH('{Bellhop,installation,cluster} installation=\"${local.table}\"', 'Maximum', 300)", id = "clusters" }]] },
    { title = "Waiting", stat = "Maximum", metrics = [for queue in aws_sqs_queue.inbox : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue.name]] },
    { title = "Oldest pending", stat = "Maximum", metrics = concat([["Bellhop", "OldestPending", "installation", local.table]], [for queue in aws_sqs_queue.inbox : ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue.name]]) },
    { title = "Dead letters", stat = "Maximum", metrics = [for queue in aws_sqs_queue.dead : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue.name]] },
    { title = "Errors", stat = "Sum", metrics = concat([["AWS/ApiGateway", local.ingest_metric.failures, local.ingest_metric.dimension, local.ingest_metric.value]], [for function in aws_lambda_function.stage : ["AWS/Lambda", "Errors", "FunctionName", function.function_name]]) },
    { title = "Time", stat = "p99", metrics = [for function in aws_lambda_function.stage : ["AWS/Lambda", "Duration", "FunctionName", function.function_name]] },
    { title = "At once", stat = "Maximum", metrics = [for function in aws_lambda_function.stage : ["AWS/Lambda", "ConcurrentExecutions", "FunctionName", function.function_name]] },
    # An API has one metric for all of 4xx; a saved query counts those that it throttled.
    { title = "Refused requests", stat = "Sum", metrics = [["AWS/ApiGateway", local.ingest_metric.refusals, local.ingest_metric.dimension, local.ingest_metric.value], ["Bellhop", "Refused", "installation", local.table]] },
    # Shown, and no alarm: the functions repeat these requests, and alarms on DynamoDB's metrics
    # stay as they are while nothing is throttled any more.
    { title = "Throttles", stat = "Sum", metrics = concat([for each in ["ReadThrottleEvents", "WriteThrottleEvents"] : ["AWS/DynamoDB", each, "TableName", aws_dynamodb_table.records.name]], [for function in aws_lambda_function.stage : ["AWS/Lambda", "Throttles", "FunctionName", function.function_name]]) },
  ]
}

resource "aws_cloudwatch_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  dashboard_name = local.global_name
  dashboard_body = jsonencode({
    widgets = [for place, graph in local.graphs : {
      type   = "metric"
      x      = 12 * (place % 2)
      y      = 6 * floor(place / 2)
      width  = 12
      height = 6
      properties = {
        title   = graph.title
        region  = local.region
        view    = "timeSeries"
        period  = 300
        stat    = graph.stat
        metrics = graph.metrics
      }
    }]
  })
}
