resource "aws_cloudwatch_log_group" "stage" {
  for_each = local.functions

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key
  tags              = local.labels
}
