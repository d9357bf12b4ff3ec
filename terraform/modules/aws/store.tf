resource "aws_dynamodb_table" "records" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "partition"
  range_key                   = "sort"
  deletion_protection_enabled = var.deletion_protection
  tags                        = local.labels

  attribute {
    name = "partition"
    type = "S"
  }

  attribute {
    name = "sort"
    type = "S"
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.kms_key
  }
}
