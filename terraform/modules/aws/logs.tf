resource "aws_cloudwatch_log_group" "stage" {
  for_each = local.functions

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key
  tags              = local.labels
}

# The API's access log has each request, also those that never reach the function. CloudWatch
# Logs needs no line in its resource policy, which is short, for groups of such names. A private API
# has none: it would need a role that the account has once for all APIs of the region.
resource "aws_cloudwatch_log_group" "ingest" {
  count = var.access_log && !local.private ? 1 : 0

  name              = "/aws/vendedlogs/apis/${var.name}-ingest"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key
  tags              = local.labels
}

# X-Ray has no resource that a policy could name.
data "aws_iam_policy_document" "tracing" {
  statement {
    actions   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "tracing" {
  for_each = var.tracing ? local.functions : {}

  name   = "tracing"
  role   = aws_iam_role.stage[each.key].id
  policy = data.aws_iam_policy_document.tracing.json
}
