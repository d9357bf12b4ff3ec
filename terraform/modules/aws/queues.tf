locals {
  # Who has charts has one inbox more, and a function of its own.
  charts = var.charts ? ["charts"] : []

  # Each inbox, and the stage that works on it.
  inboxes = merge({
    evaluate = "evaluate"
    review   = "evaluate"
    patient  = "evaluate"
    deploy   = "deploy"
    apply    = "deploy"
    confirm  = "sweep"
    sweep    = "sweep"
    probe    = "sweep"
  }, { for each in local.charts : each => each })
}

resource "aws_sqs_queue" "dead" {
  for_each = local.inboxes

  name                      = "${var.name}-${each.key}-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.labels
}

resource "aws_sqs_queue" "inbox" {
  for_each = local.inboxes

  name                       = "${var.name}-${each.key}"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 6 * local.functions[each.value].timeout
  sqs_managed_sse_enabled    = true
  tags                       = local.labels

  # A stage buries what it has tried often enough, with the reason. SQS buries that on which nobody
  # ever reported: twice as many tries, since some end before a message's turn.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.key].arn
    maxReceiveCount     = 2 * tonumber(lookup(var.settings, "attempts", "12"))
  })
}
