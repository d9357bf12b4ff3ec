# An example with all options: CEL, settings, sizes, a network for private API servers, EKS clusters, what
# roles may do at most, who may use the CLI, who may send, events of AWS that count, and who gets alarms.
module "bellhop" {
  source = "git::https://git.example.com/bellhop.git//terraform/modules/aws?ref=v0.1.0"

  name         = "bellhop-production"
  tags         = { team = "platform", environment = "production" }
  packages     = var.packages
  architecture = var.architecture

  # The account's quota, or Bellhop's part of it: a new account has 10 until AWS raises it.
  concurrency = 1000

  cel    = true
  charts = true

  settings = {
    attempts       = 8
    sweep_interval = 600
    ledger_days    = 30
  }

  functions = {
    ingest = { memory = 1024 }
    deploy = { memory = 2048, timeout = 180 }
  }

  network = {
    subnet_ids         = aws_route_table_association.private[*].subnet_id
    security_group_ids = [aws_security_group.functions.id]
  }

  eks_clusters = ["arn:aws:eks:${var.region}:${data.aws_caller_identity.here.account_id}:cluster/*"]
  eks_roles    = ["arn:aws:iam::*:role/bellhop-clusters"]

  configuration_cluster = true

  role_path            = "/bellhop/"
  permissions_boundary = aws_iam_policy.boundary.arn
  operators            = ["arn:aws:iam::${data.aws_caller_identity.here.account_id}:role/platform-*"]

  ingest_allow = ["203.0.113.0/24"]
  ingest_rate  = 1000

  event_rules = {
    images = {
      cluster = "fleet/source"
      pattern = jsonencode({ source = ["aws.ecr"], detail-type = ["ECR Image Action"] })
      subject = "detail.repository-name"
    }
  }

  log_retention_days     = 90
  recovery_days          = 7
  destroy_with_clusters  = var.destroy_with_clusters
  notifications          = [aws_sns_topic.alarms.arn]
  oldest_message_minutes = 15
}

data "aws_caller_identity" "here" {}

output "bellhop" {
  description = "The installation, as `bellhop context add NAME --aws -` reads it."
  value       = module.bellhop.bellhop
}
