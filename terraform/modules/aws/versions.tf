terraform {
  # Write-only arguments and ephemeral resources keep the sealing key out of the state.
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
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
  region    = data.aws_region.here.name
  labels    = merge(var.labels, { bellhop = var.name })
}
