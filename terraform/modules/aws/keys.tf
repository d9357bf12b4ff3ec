# One key seals table, bucket, secrets and logs. Its policy names the functions' roles and the
# operators, who may use it only through those services.
# The account administers it, so that nobody can lock the account out of its own key.
locals {
  kms_key = var.kms_key_arn == null ? aws_kms_key.this[0].arn : var.kms_key_arn

  key_actions  = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
  key_services = [for each in concat(["dynamodb", "s3", "secretsmanager"], local.parameters ? ["ssm"] : []) : "${each}.${local.region}.amazonaws.com"]
}

data "aws_iam_policy_document" "key" {
  statement {
    sid       = "Administer"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.partition}:iam::${local.account}:root"]
    }
  }

  statement {
    sid       = "UseThroughServices"
    actions   = local.key_actions
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    # A policy that named them as principals could not be written before they are there, and would
    # take no `*`.
    condition {
      test     = "ArnLike"
      variable = "aws:PrincipalArn"
      values   = concat([for role in aws_iam_role.stage : role.arn], tolist(var.operators))
    }

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values   = local.key_services
    }
  }

  statement {
    sid       = "SealLogs"
    actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
    resources = ["*"]

    principals {
      type        = "Service"
      identifiers = ["logs.${local.region}.amazonaws.com"]
    }

    condition {
      test     = "ArnLike"
      variable = "kms:EncryptionContext:aws:logs:arn"
      values = [
        for group in concat([for stage in keys(local.functions) : "lambda/${var.name}-${stage}"], ["vendedlogs/apis/${var.name}-ingest"]) :
        "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws/${group}"
      ]
    }
  }
}

resource "aws_kms_key" "this" {
  count = var.kms_key_arn == null ? 1 : 0

  description             = "Bellhop ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = var.recovery_days
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = local.labels
}

resource "aws_kms_alias" "this" {
  count = var.kms_key_arn == null ? 1 : 0

  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this[0].key_id
}
