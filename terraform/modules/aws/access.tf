# A role for each function, with what that stage does and nothing else: tests play what each stage
# meets, and see that it fails without any one of these rights.
locals {
  rights = merge({
    ingest = {
      # It requests the owner of a drifted object at once.
      publishes = ["apply", "confirm", "evaluate", "sweep"]
      blobs     = { gate = ["GetObject"], observation = ["PutObject"] }
      secrets   = {}
    }
    evaluate = {
      # It checks with access reviews what a service account may read, and sends notifications.
      publishes = ["confirm", "deploy", "patient", "probe"]
      blobs     = { "" = ["GetObject", "PutObject"] }
      secrets   = {}
    }
    deploy = {
      # An action of a CloudEvent that deletes is evaluated again; a resync reads Bellhop's writes back.
      publishes = concat(["apply", "deploy", "evaluate", "review", "status", "sweep"], local.charts)
      blobs     = { "" = ["GetObject", "PutObject"] }
      secrets   = { "kubeconfig/*" = "read" }
    }
    sweep = {
      publishes = ["apply", "confirm", "deploy", "evaluate", "patient", "probe", "review", "status", "sweep"]
      blobs     = { "" = ["DeleteObject", "GetObject", "PutObject"] }
      # It renews registrations before the senders' credentials expire, and keeps the credentials of
      # a former cluster of the same name. It does not create a cluster that was deregistered. Where
      # objects register clusters, it stores and deletes their kubeconfigs.
      secrets = {
        "abandoned/*"  = "write"
        "kubeconfig/*" = var.configuration_cluster ? "write" : "read"
      }
    }
    schedule = {
      # It evaluates classifiers again after their pause.
      publishes = ["apply", "confirm", "deploy", "patient", "probe", "review", "status", "sweep"]
      blobs     = { "" = ["GetObject", "PutObject"] }
      secrets   = {}
    }
    }, {
    # It has deploy's rights to apply a profile, and publishes the rest of its work to itself; deploy
    # counts the stage of a promotion that has waited for it.
    for each in local.charts : each => {
      publishes = ["apply", "charts", "deploy", "status", "sweep"]
      blobs     = { "" = ["GetObject", "PutObject"] }
      secrets   = { "kubeconfig/*" = "read" }
    }
  })

  # Ingest faces the Internet: its role names the partitions of the table that it reads and writes.
  partitions_of_ingest = {
    GetItem    = ["arrival/*", "gate", "heard", "inquiry", "issuer", "look", "move", "observation/*", "owner/*", "payload/gate/*", "refusals", "sender/*"]
    PutItem    = ["arrival/*", "heard", "inquiry", "ledger/*", "ledgers/*", "look", "observation/*", "payload/observation/*", "receipt/*", "refusals", "trash/*"]
    Query      = ["mount/*", "payload/observation/*", "reader"]
    DeleteItem = ["payload/observation/*", "receipt/*"]
  }

  # Credentials of senders and tokens of clusters: ingest checks them, and sweep renews them.
  partitions_of_senders = ["caller", "issuer", "payload/caller/*", "payload/sender/*", "receipt/*", "sender/*"]

  # What is deployed where: evaluate, which runs the scripts of tenants, reads these partitions and writes none.
  partitions_of_deploy = ["cluster", "configured/*", "frozen/*", "gate", "inventory/*", "manifest/*", "outcome/*", "owner/*", "payload/configured/*", "payload/frozen/*", "payload/gate/*", "payload/inventory/*", "payload/manifest/*", "payload/pin/*", "payload/profile/*", "payload/release/*", "payload/written/*", "pin/*", "profile/*", "promotion", "release/*", "written/*"]

  uses_of_records = { for stage, _ in local.rights : stage => (
    stage == "ingest" ? tomap({}) :
    stage == "evaluate" ? tomap({ Records = ["GetItem", "Query"], Writes = ["DeleteItem", "PutItem"] }) :
    tomap({ Records = ["DeleteItem", "GetItem", "PutItem", "Query"] })
  ) }

  takes = { for stage, _ in local.stages : stage => [for queue, by in local.queues : queue if by == stage] }

  # A function publishes a failed message of its queue again.
  sends = { for stage, each in local.rights : stage => distinct(concat([for inbox in each.publishes : local.queue_of[inbox]], local.takes[stage])) }
}

data "aws_iam_policy_document" "trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "stage" {
  for_each = local.rights

  dynamic "statement" {
    for_each = local.uses_of_records[each.key]

    content {
      sid       = statement.key
      actions   = [for action in statement.value : "dynamodb:${action}"]
      resources = [aws_dynamodb_table.records.arn]

      dynamic "condition" {
        for_each = each.key == "sweep" ? [] : [1]

        content {
          test     = "ForAllValues:StringNotLike"
          variable = "dynamodb:LeadingKeys"
          values   = concat(local.partitions_of_senders, statement.key == "Writes" ? local.partitions_of_deploy : [])
        }
      }
    }
  }

  dynamic "statement" {
    for_each = each.key == "ingest" ? local.partitions_of_ingest : {}

    content {
      sid       = "Records${statement.key}"
      actions   = ["dynamodb:${statement.key}"]
      resources = [aws_dynamodb_table.records.arn]

      condition {
        test     = "ForAllValues:StringLike"
        variable = "dynamodb:LeadingKeys"
        values   = statement.value
      }
    }
  }

  dynamic "statement" {
    for_each = each.value.blobs

    content {
      sid       = "Blobs${title(statement.key)}"
      actions   = [for each in statement.value : "s3:${each}"]
      resources = ["${aws_s3_bucket.blobs.arn}/blobs/${join("/", compact([statement.key, "*"]))}"]
    }
  }

  # Without it S3 answers 403 for a missing object.
  statement {
    sid       = "MissingBlobs"
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.blobs.arn]
  }

  statement {
    sid       = "SealingKeys"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = concat([aws_secretsmanager_secret.key["ingest"].arn], each.key == "ingest" ? [] : [aws_secretsmanager_secret.key["sealing"].arn])
  }

  statement {
    sid     = "Publish"
    actions = ["sqs:SendMessage"]
    resources = concat(
      [for queue in local.sends[each.key] : aws_sqs_queue.inbox[queue].arn],
      [for queue in local.takes[each.key] : aws_sqs_queue.dead[queue].arn],
    )
  }

  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.stage[each.key].arn}:*"]
  }

  dynamic "statement" {
    for_each = length(local.takes[each.key]) > 0 ? [1] : []

    content {
      sid       = "Work"
      actions   = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
      resources = [for queue in local.takes[each.key] : aws_sqs_queue.inbox[queue].arn]
    }
  }

  # EventBridge's rules publish events of clusters.
  dynamic "statement" {
    for_each = each.key == "ingest" ? aws_sqs_queue.events : []

    content {
      sid       = "Events"
      actions   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
      resources = [statement.value.arn]
    }
  }

  dynamic "statement" {
    for_each = each.value.secrets

    content {
      sid       = title(trimsuffix(statement.key, "/*"))
      actions   = local.kubeconfig_actions[statement.value]
      resources = ["${local.kubeconfigs}/${statement.key}"]
    }
  }

  dynamic "statement" {
    for_each = contains(local.reaching, each.key) && length(var.eks_clusters) > 0 ? [1] : []

    content {
      sid       = "Clusters"
      actions   = ["eks:DescribeCluster"]
      resources = var.eks_clusters
    }
  }

  # Clusters of other accounts are reached by roles there, whose trust policies name these.
  dynamic "statement" {
    for_each = contains(local.reaching, each.key) && length(var.eks_roles) > 0 ? [1] : []

    content {
      sid       = "Roles"
      actions   = ["sts:AssumeRole"]
      resources = var.eks_roles
    }
  }

  # The policy of the module's own key names these roles; your key's policy may leave it to IAM.
  dynamic "statement" {
    for_each = var.kms_key_arn[*]

    content {
      sid       = "Key"
      actions   = local.key_actions
      resources = [statement.value]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = local.key_services
      }
    }
  }

  # Lambda asks for these to place a function; AWS knows no narrower resource for them.
  dynamic "statement" {
    for_each = contains(local.reaching, each.key) && var.network != null ? [1] : []

    content {
      sid = "Network"
      actions = [
        "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
      ]
      resources = ["*"]
    }
  }
}

resource "aws_iam_role" "stage" {
  for_each = local.rights

  name                 = "${local.global_name}-${each.key}"
  path                 = var.role_path
  description          = "Bellhop ${var.name}: ${each.key}"
  assume_role_policy   = data.aws_iam_policy_document.trust.json
  permissions_boundary = var.permissions_boundary
  tags                 = local.labels
}

resource "aws_iam_role_policy" "stage" {
  for_each = local.rights

  name   = "stage"
  role   = aws_iam_role.stage[each.key].id
  policy = data.aws_iam_policy_document.stage[each.key].json
}
