# Names of buckets are one world's: account and region make ours.
resource "aws_s3_bucket" "blobs" {
  bucket = "${var.name}-${local.account}-${local.region}"
  # Its objects mean nothing without the table; the guard keeps both while clusters need them.
  force_destroy = true
  tags          = local.labels
}

resource "aws_s3_bucket_versioning" "blobs" {
  bucket = aws_s3_bucket.blobs.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_public_access_block" "blobs" {
  bucket                  = aws_s3_bucket.blobs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "blobs" {
  bucket = aws_s3_bucket.blobs.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.kms_key
    }
  }
}

# The table can be had back as it was at any time of the last 35 days; so can what it names.
resource "aws_s3_bucket_lifecycle_configuration" "blobs" {
  bucket     = aws_s3_bucket.blobs.id
  depends_on = [aws_s3_bucket_versioning.blobs]

  rule {
    id     = "leave"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 35
    }

    expiration {
      expired_object_delete_marker = true
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

data "aws_iam_policy_document" "blobs" {
  statement {
    sid       = "EncryptedOnTheWay"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [aws_s3_bucket.blobs.arn, "${aws_s3_bucket.blobs.arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "blobs" {
  bucket     = aws_s3_bucket.blobs.id
  policy     = data.aws_iam_policy_document.blobs.json
  depends_on = [aws_s3_bucket_public_access_block.blobs]
}
