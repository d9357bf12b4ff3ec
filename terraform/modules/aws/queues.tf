locals {
  # Charts have a queue and a function of their own.
  charts = var.charts ? ["charts"] : []

  # Each inbox: the stage that works on it, and the queue that it shares with others of the stage.
  # Work that may take long has a queue of its own, so that events do not wait for it.
  inboxes = merge({
    evaluate = { stage = "evaluate", queue = "evaluate" }
    review   = { stage = "evaluate", queue = "review" }
    patient  = { stage = "evaluate", queue = "review" }
    deploy   = { stage = "deploy", queue = "deploy" }
    apply    = { stage = "deploy", queue = "apply" }
    status   = { stage = "deploy", queue = "apply" }
    confirm  = { stage = "sweep", queue = "sweep" }
    sweep    = { stage = "sweep", queue = "sweep" }
    probe    = { stage = "sweep", queue = "sweep" }
  }, { for each in local.charts : each => { stage = each, queue = each } })

  # A queue feeds at least two instances of its function. In a small account each function has one
  # queue, so that all of them together leave instances to ingest.
  small    = var.concurrency < 100
  queue_of = { for inbox, each in local.inboxes : inbox => local.small ? each.stage : each.queue }
  queues   = merge([for inbox, each in local.inboxes : { (local.queue_of[inbox]) = each.stage }]...)

  retention  = 1209600
  visibility = { for queue, stage in local.queues : queue => 6 * local.functions[stage].timeout }

  # What takes long comes in small batches: the last message of a batch waits for all others.
  batches = { for queue, stage in local.queues : queue => stage == "evaluate" ? 10 : 3 }

  # A stage dead-letters what it has tried often enough, with the reason. SQS counts receives, also
  # those that Lambda had no instance for: it dead-letters a message that nobody ever reported on,
  # half-way to its expiry, which the dead letter keeps.
  receives = { for queue, seconds in local.visibility : queue => min(1000, floor(local.retention / seconds / 2)) }

  queue_urls = { for inbox, queue in local.queue_of : inbox => aws_sqs_queue.inbox[queue].url }

  # Ingest and schedule keep a tenth, and two at least, and two more for rules of EventBridge.
  # The queues share the rest; deploy, which has most to do for an event, has what is left over. What
  # all of them may have together never exceeds it, or Lambda would throttle ingest.
  spared   = max(2, ceil(var.concurrency / 10))
  kept     = local.spared + (length(var.event_rules) > 0 ? 2 : 0)
  at_once  = floor((var.concurrency - local.kept) / length(local.queues))
  leftover = var.concurrency - local.kept - local.at_once * length(local.queues)
}

resource "aws_sqs_queue" "dead" {
  for_each = local.queues

  name                      = "${var.name}-${each.key}-dead"
  message_retention_seconds = local.retention
  sqs_managed_sse_enabled   = true
  tags                      = local.labels
}

resource "aws_sqs_queue" "inbox" {
  for_each = local.queues

  name                       = "${var.name}-${each.key}"
  message_retention_seconds  = local.retention
  visibility_timeout_seconds = local.visibility[each.key]
  sqs_managed_sse_enabled    = true
  tags                       = local.labels

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.key].arn
    maxReceiveCount     = local.receives[each.key]
  })
}
