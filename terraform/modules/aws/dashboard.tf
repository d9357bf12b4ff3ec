locals {
  # Title, and its metrics: each is a namespace, a name, a dimension and its value.
  graphs = {
    "1 Events"         = { stat = "Sum", metrics = [for each in ["Events", "Matched", "Applied", "Failed"] : ["Bellhop", each, "installation", var.name]] }
    "2 Misses"         = { stat = "Sum", metrics = [["Bellhop", "Misses", "installation", var.name]] }
    "3 Waiting"        = { stat = "Maximum", metrics = [for queue in aws_sqs_queue.inbox : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue.name]] }
    "4 Oldest pending" = { stat = "Maximum", metrics = concat([["Bellhop", "OldestPending", "installation", var.name]], [for queue in aws_sqs_queue.inbox : ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue.name]]) }
    "5 Dead letters"   = { stat = "Maximum", metrics = [for queue in aws_sqs_queue.dead : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue.name]] }
    "6 Errors"         = { stat = "Sum", metrics = concat([["AWS/ApiGateway", local.ingest_metric.failures, local.ingest_metric.dimension, local.ingest_metric.value]], [for function in aws_lambda_function.stage : ["AWS/Lambda", "Errors", "FunctionName", function.function_name]]) }
    "7 Time"           = { stat = "p99", metrics = [for function in aws_lambda_function.stage : ["AWS/Lambda", "Duration", "FunctionName", function.function_name]] }
    "8 At once"        = { stat = "Maximum", metrics = [for function in aws_lambda_function.stage : ["AWS/Lambda", "ConcurrentExecutions", "FunctionName", function.function_name]] }
  }
}

resource "aws_cloudwatch_dashboard" "this" {
  count = var.dashboard ? 1 : 0

  dashboard_name = local.global_name
  dashboard_body = jsonencode({
    widgets = [for place, title in keys(local.graphs) : {
      type   = "metric"
      x      = 12 * (place % 2)
      y      = 6 * floor(place / 2)
      width  = 12
      height = 6
      properties = {
        title   = substr(title, 2, -1)
        region  = local.region
        view    = "timeSeries"
        period  = 300
        stat    = local.graphs[title].stat
        metrics = local.graphs[title].metrics
      }
    }]
  })
}
