locals {
  runtime = "python3.13"

  stages = merge({
    ingest   = { memory = 512, timeout = 30, concurrency = -1 }
    evaluate = { memory = 512, timeout = 60, concurrency = -1 }
    deploy   = { memory = 1024, timeout = 120, concurrency = -1 }
    sweep    = { memory = 1024, timeout = 300, concurrency = -1 }
    schedule = { memory = 1024, timeout = 60, concurrency = -1 }
    }, {
    for each in local.charts : each => { memory = 1024, timeout = 300, concurrency = -1 }
  })

  functions = {
    for stage, usual in local.stages : stage => {
      for what, value in usual : what => coalesce(try(var.functions[stage][what], null), value)
    }
  }

  # Packages have Helm and kubectl for no other architecture.
  architectures = { for stage in keys(local.stages) : stage => contains(local.charts, stage) ? "x86_64" : var.architecture }

  # Those that judge objects by rules, of sources and of checks.
  judging = toset(concat(["deploy", "evaluate"], local.charts))

  # CEL's runtime is half as large as all functions, so only the stages that need it have it.
  layers_of = {
    for stage in keys(local.stages) : stage => [
      for layer in concat(
        var.cel && contains(local.judging, stage) ? ["cel"] : [],
        contains(local.charts, stage) ? ["helm"] : [],
      ) : "${layer}-${local.architectures[stage]}"
    ]
  }

  layers = toset(flatten(values(local.layers_of)))

  # Instances that each queue may feed at once, within what the function may have.
  concurrency_of = {
    for queue, stage in local.queues : queue => max(2, min(
      1000,
      local.at_once + (queue == "deploy" ? local.leftover : 0),
      local.functions[stage].concurrency < 0 ? 1000 : floor(local.functions[stage].concurrency / length([for each in local.queues : each if each == stage])),
    ))
  }

  # Those that call API servers.
  reaching = toset(concat(["deploy", "sweep"], local.charts))

  known_settings = toset([
    "adopt", "attempts", "body_limit", "deletion_agreement", "deletion_floor", "deletion_share",
    "egress_allow", "forwarder_image", "hold_agreement", "hold_from", "hold_share", "hold_window",
    "ledger_days", "ledger_megabytes", "mirrors", "named_clusters", "report_inbox", "retry_ceiling",
    "retry_first", "retry_longest", "revisions",
    "script_first_seconds", "script_memory", "script_seconds", "sweep_bytes", "sweep_interval",
    "template_output", "template_seconds", "turn", "visibility", "workers",
  ])

  may_be_zero = toset(["deletion_floor", "deletion_share", "hold_agreement", "hold_share", "named_clusters", "revisions"])

  environment = merge(
    { for name, value in var.settings : "BELLHOP_${upper(name)}" => value },
    {
      BELLHOP_TABLE             = aws_dynamodb_table.records.name
      BELLHOP_BUCKET            = aws_s3_bucket.blobs.bucket
      BELLHOP_QUEUES            = jsonencode(local.queue_urls)
      BELLHOP_SECRETS           = local.secrets
      BELLHOP_KEY_SECRET        = aws_secretsmanager_secret.key["sealing"].name
      BELLHOP_INGEST_KEY_SECRET = aws_secretsmanager_secret.key["ingest"].name
    },
  )

  # Only a stage that needs it knows more.
  environments = {
    ingest   = merge({ BELLHOP_KEY_SECRET = aws_secretsmanager_secret.key["ingest"].name, BELLHOP_INGEST_KEY_SECRET = "" }, length(var.ingest_allow) > 0 ? { BELLHOP_INGEST_ALLOW = join(",", var.ingest_allow) } : {})
    evaluate = {}
    deploy   = {}
    charts   = { BELLHOP_HELM = "/opt/helm/helm", BELLHOP_KUBECTL = "/opt/kubectl/kubectl" }
    sweep    = { BELLHOP_INGEST_URL = local.ingest_url, BELLHOP_KMS_KEY = local.kms_key }
    schedule = {}
  }
}

resource "aws_lambda_layer_version" "this" {
  for_each = local.layers

  layer_name               = "${var.name}-${split("-", each.key)[0]}"
  description              = "Bellhop ${var.name}: ${startswith(each.key, "cel") ? "CEL's runtime" : "Helm and kubectl"}"
  compatible_architectures = [split("-", each.key)[1]]
  compatible_runtimes      = [local.runtime]
  filename                 = local.packages["layer-${each.key}"].filename
  s3_bucket                = local.packages["layer-${each.key}"].s3_bucket
  s3_key                   = local.packages["layer-${each.key}"].s3_key
  s3_object_version        = local.packages["layer-${each.key}"].s3_version
}

resource "aws_lambda_function" "stage" {
  for_each = local.functions

  function_name                  = "${var.name}-${each.key}"
  description                    = "Bellhop ${var.name}: ${each.key}"
  role                           = aws_iam_role.stage[each.key].arn
  runtime                        = local.runtime
  architectures                  = [local.architectures[each.key]]
  handler                        = "functions.${each.key}.aws.handle"
  filename                       = local.packages["functions-${local.architectures[each.key]}"].filename
  s3_bucket                      = local.packages["functions-${local.architectures[each.key]}"].s3_bucket
  s3_key                         = local.packages["functions-${local.architectures[each.key]}"].s3_key
  s3_object_version              = local.packages["functions-${local.architectures[each.key]}"].s3_version
  layers                         = [for layer in local.layers_of[each.key] : aws_lambda_layer_version.this[layer].arn]
  memory_size                    = each.value.memory
  timeout                        = each.value.timeout
  reserved_concurrent_executions = each.value.concurrency
  publish                        = true
  tags                           = local.labels

  environment {
    variables = merge(local.environment, local.environments[each.key])
  }

  dynamic "tracing_config" {
    for_each = var.tracing ? [1] : []

    content {
      mode = "Active"
    }
  }

  dynamic "snap_start" {
    for_each = contains(var.snap_start, each.key) ? [1] : []

    content {
      apply_on = "PublishedVersions"
    }
  }

  dynamic "vpc_config" {
    for_each = var.network != null && contains(local.reaching, each.key) ? [var.network] : []

    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  lifecycle {
    precondition {
      condition     = length(local.stale_packages) == 0
      error_message = "The folder ${coalesce(var.packages, "-")} lacks packages of this module's sources, or has them with other sums than its SHA256SUMS: ${join(", ", local.stale_packages)}. Run `make package` in the checkout that the module is part of, or take the packages of its release."
    }
  }

  # A function that runs before it may write its log, or read the key, fails once for nothing.
  depends_on = [
    aws_cloudwatch_log_group.stage,
    aws_iam_role_policy.stage,
    aws_secretsmanager_secret_version.key,
  ]
}

# Triggers of a function name its alias, which switches from one version to the next at once.
resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = "live"
  function_name    = aws_lambda_function.stage[each.key].function_name
  function_version = aws_lambda_function.stage[each.key].version
}

resource "aws_lambda_event_source_mapping" "inbox" {
  for_each = local.queues

  event_source_arn        = aws_sqs_queue.inbox[each.key].arn
  function_name           = aws_lambda_alias.live[each.value].arn
  batch_size              = local.batches[each.key]
  enabled                 = local.functions[each.value].concurrency != 0
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = local.labels

  # Without it Lambda receives messages that it has no instance for, and their receives count.
  scaling_config {
    maximum_concurrency = local.concurrency_of[each.key]
  }
}

# What is left to do of a long piece of work, and the next attempt of one that fails, is published to
# the queue that feeds the function. After 16 invocations Lambda would take that for a loop, and
# refuse the message. Attempts and turns end by themselves. Ingest feeds no queue of its own.
resource "aws_lambda_function_recursion_config" "this" {
  for_each = toset(values(local.queues))

  function_name  = aws_lambda_function.stage[each.key].function_name
  recursive_loop = "Allow"
}
