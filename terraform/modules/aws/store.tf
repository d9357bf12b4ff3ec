locals {
  # Functions name metrics after it, too.
  table = coalesce(var.table, var.name)
}

resource "aws_dynamodb_table" "records" {
  name                        = local.table
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

  # Where a restored table was not imported, AWS refuses to create another one of its name, before
  # Terraform deletes the former one.
  lifecycle {
    create_before_destroy = true
  }
}
