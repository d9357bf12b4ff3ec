output "bellhop" {
  description = "The installation, as `bellhop context add NAME --aws -` reads it."
  value = {
    kind       = "aws"
    version    = local.version
    region     = local.region
    table      = aws_dynamodb_table.records.name
    bucket     = aws_s3_bucket.blobs.bucket
    queues     = { for inbox, queue in aws_sqs_queue.inbox : inbox => queue.url }
    secrets    = var.name
    key_secret = aws_secretsmanager_secret.sealing_key.name
    kms_key    = aws_kms_key.this.arn
    ingest_url = aws_apigatewayv2_api.ingest.api_endpoint
    log_groups = { for stage, group in aws_cloudwatch_log_group.stage : stage => group.name }
    roles      = { for stage, role in aws_iam_role.stage : stage => role.arn }
  }
}

output "policies" {
  description = "Policies for people, in JSON: `operator` for all commands, `read_only` for those that look."
  value = {
    for name, file in { operator = "operator", read_only = "read-only" } : name => templatefile("${path.module}/policies/${file}.json.tftpl", {
      partition  = local.partition
      region     = local.region
      account    = local.account
      name       = var.name
      bucket     = aws_s3_bucket.blobs.bucket
      key_secret = aws_secretsmanager_secret.sealing_key.name
    })
  }
}
