# One key seals table, bucket, secrets and logs. Who may use those services may use the key, through
# them alone: no role names it, and no right to decrypt is worth anything elsewhere.
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
    actions   = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "StringEquals"
      variable = "kms:CallerAccount"
      values   = [local.account]
    }

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values   = [for each in ["dynamodb", "s3", "secretsmanager"] : "${each}.${local.region}.amazonaws.com"]
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
      values   = ["arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws/lambda/${var.name}-*"]
    }
  }
}

resource "aws_kms_key" "this" {
  description             = "Bellhop ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = var.recovery_days
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = local.labels
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this.key_id
}
