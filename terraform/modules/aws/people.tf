# Policies for people name each resource by its ARN: a pattern such as `bellhop-*` would name those of
# an installation `bellhop-production`, too.
locals {
  # Approvers of promotions read all, and write the one partition that operators may not write.
  policies = {
    for name, files in { approver = ["read-only", "approver"], operator = ["operator"], read_only = ["read-only"] } : name => jsonencode({
      Version = "2012-10-17"
      Statement = concat(
        flatten([for file in files : jsondecode(templatefile("${path.module}/policies/${file}.json.tftpl", {
          table        = aws_dynamodb_table.records.arn
          bucket       = aws_s3_bucket.blobs.arn
          sealing_key  = aws_secretsmanager_secret.key["sealing"].arn
          ingest_key   = aws_secretsmanager_secret.key["ingest"].arn
          eks_clusters = "arn:${local.partition}:eks:*:${local.account}:cluster/*"
          queues       = jsonencode(concat(local.inbox_arns, local.dead_arns))
          inboxes      = jsonencode(local.inbox_arns)
          deploy       = aws_sqs_queue.inbox[local.queue_of.deploy].arn
          dead_letters = jsonencode(local.dead_arns)
          log_groups   = jsonencode([for group in aws_cloudwatch_log_group.stage : "${group.arn}:*"])
        })).Statement]),
        name == "operator" ? concat(local.kubeconfigs_statements, local.roles_statement) : [],
        local.key_statement,
      )
    })
  }

  inbox_arns = [for queue in aws_sqs_queue.inbox : queue.arn]
  dead_arns  = [for queue in aws_sqs_queue.dead : queue.arn]

  kubeconfigs_statements = jsondecode(templatefile("${path.module}/policies/${var.kubeconfig_store}.json.tftpl", {
    secrets = local.kubeconfigs
  })).Statement

  # A registration calls a cluster of another account, too.
  roles_statement = [for roles in length(var.eks_roles) > 0 ? [var.eks_roles] : [] : {
    Sid      = "Roles"
    Effect   = "Allow"
    Action   = ["sts:AssumeRole"]
    Resource = roles
  }]

  # As in the functions' roles: your key's policy may leave it to IAM.
  key_statement = [for key in var.kms_key_arn[*] : {
    Sid       = "Key"
    Effect    = "Allow"
    Action    = local.key_actions
    Resource  = [key]
    Condition = { StringEquals = { "kms:ViaService" = local.key_services } }
  }]
}
