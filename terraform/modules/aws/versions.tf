terraform {
  # Write-only arguments and ephemeral resources keep the sealing key out of the state.
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

data "aws_region" "here" {}

locals {
  version   = "0.1.0"
  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition
  # Version 6 deprecates `name`, and version 5 has no `region`.
  region = data.aws_region.here.id
  labels = merge(var.tags, { bellhop = var.name })

  # IAM and dashboards have one set of names for all regions of an account.
  global_name = "${var.name}-${local.region}"
}
