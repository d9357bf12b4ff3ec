output "bellhop" {
  description = "The installation, as `bellhop context add NAME --aws -` reads it."
  value = {
    kind              = "aws"
    version           = local.version
    region            = local.region
    table             = aws_dynamodb_table.records.name
    bucket            = aws_s3_bucket.blobs.bucket
    queues            = local.queue_urls
    secrets           = local.secrets
    key_secret        = aws_secretsmanager_secret.key["sealing"].name
    ingest_key_secret = aws_secretsmanager_secret.key["ingest"].name
    kms_key           = local.kms_key
    ingest_url        = local.ingest_url
    log_groups        = { for stage, group in aws_cloudwatch_log_group.stage : stage => group.name }
    roles             = { for stage, role in aws_iam_role.stage : stage => role.arn }
  }
}

output "domain_target" {
  description = "Where the DNS record of `domain_name` leads: an alias of this `name` in this hosted `zone_id`, or a CNAME of the name; null without a domain."
  value = one([for each in aws_apigatewayv2_domain_name.ingest[*].domain_name_configuration[0] : {
    name    = each.target_domain_name
    zone_id = each.hosted_zone_id
  }])
}

output "policies" {
  description = "Policies for people, in JSON: `operator` for all commands but decisions about promotions, `approver` for these, `read_only` for commands that look."
  value       = local.policies
}
