# Events of AWS that count as CloudEvents of a cluster: rules of EventBridge write them into a queue,
# which feeds ingest. Without rules nothing of it is there.
locals {
  # The queue, and where it leaves what ingest never took.
  event_queues = length(var.event_rules) > 0 ? { events = aws_sqs_queue.events[0], dead = aws_sqs_queue.events_dead[0] } : {}
}

resource "aws_sqs_queue" "events_dead" {
  count = length(var.event_rules) > 0 ? 1 : 0

  name                      = "${var.name}-events-dead"
  message_retention_seconds = local.retention
  sqs_managed_sse_enabled   = true
  tags                      = local.labels
}

# What ingest does not take comes again every few minutes: its cluster may be registered meanwhile,
# or the store answer again.
resource "aws_sqs_queue" "events" {
  count = length(var.event_rules) > 0 ? 1 : 0

  name                       = "${var.name}-events"
  message_retention_seconds  = local.retention
  visibility_timeout_seconds = 6 * local.functions.ingest.timeout
  sqs_managed_sse_enabled    = true
  tags                       = local.labels

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.events_dead[0].arn
    maxReceiveCount     = 2 * tonumber(lookup(var.settings, "attempts", "12"))
  })
}

# Nobody but these rules writes into either: what is in the queue is believed.
data "aws_iam_policy_document" "events" {
  for_each = local.event_queues

  statement {
    actions   = ["sqs:SendMessage"]
    resources = [each.value.arn]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [for rule in aws_cloudwatch_event_rule.this : rule.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "events" {
  for_each = local.event_queues

  queue_url = each.value.url
  policy    = data.aws_iam_policy_document.events[each.key].json
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = var.event_rules

  name           = "${var.name}-${each.key}"
  description    = "What counts as CloudEvents of ${each.value.cluster} in Bellhop ${var.name}"
  event_bus_name = each.value.bus
  event_pattern  = each.value.pattern
  tags           = local.labels
}

# The rule says for which cluster an event counts, and where in it the subject stands.
resource "aws_cloudwatch_event_target" "this" {
  for_each = var.event_rules

  rule           = aws_cloudwatch_event_rule.this[each.key].name
  event_bus_name = each.value.bus
  target_id      = "ingest"
  arn            = aws_sqs_queue.events[0].arn

  input_transformer {
    input_template = "{\"cluster\": ${jsonencode(each.value.cluster)}, \"subject\": ${jsonencode(each.value.subject)}, \"event\": <aws.events.event.json>}"
  }

  dead_letter_config {
    arn = aws_sqs_queue.events_dead[0].arn
  }

  depends_on = [aws_sqs_queue_policy.events]
}

resource "aws_lambda_event_source_mapping" "events" {
  count = length(var.event_rules) > 0 ? 1 : 0

  event_source_arn        = aws_sqs_queue.events[0].arn
  function_name           = aws_lambda_alias.live["ingest"].arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = local.labels

  # A burst of AWS' events leaves instances to clusters' requests, and loses no receive to throttling.
  scaling_config {
    maximum_concurrency = 2
  }

  # Lambda asks for them when the mapping is made.
  depends_on = [aws_iam_role_policy.stage]
}
