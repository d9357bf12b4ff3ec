# Before a destroy, the schedule function checks for registered clusters, and fails if there are
# some, which ends Terraform's run. To skip the check, apply `destroy_with_clusters = true` first.
#
# It depends on all other resources, since Terraform destroys dependent resources first.
resource "aws_lambda_invocation" "guard" {
  function_name   = aws_lambda_function.stage["schedule"].function_name
  qualifier       = aws_lambda_alias.live["schedule"].name
  lifecycle_scope = "CRUD"
  terraform_key   = "terraform"
  input           = jsonencode({ destroy_with_clusters = var.destroy_with_clusters })

  depends_on = [
    aws_api_gateway_method_settings.ingest,
    aws_apigatewayv2_api_mapping.ingest,
    aws_apigatewayv2_route.ingest,
    aws_apigatewayv2_stage.ingest,
    aws_budgets_budget.monthly,
    aws_cloudwatch_dashboard.this,
    aws_cloudwatch_event_target.this,
    aws_cloudwatch_metric_alarm.this,
    aws_cloudwatch_query_definition.this,
    aws_kms_alias.this,
    aws_lambda_event_source_mapping.events,
    aws_lambda_event_source_mapping.inbox,
    aws_lambda_function_event_invoke_config.tick,
    aws_lambda_permission.ingest,
    aws_s3_bucket_lifecycle_configuration.blobs,
    aws_s3_bucket_policy.blobs,
    aws_s3_bucket_server_side_encryption_configuration.blobs,
    aws_s3_bucket_versioning.blobs,
    aws_scheduler_schedule.tick,
  ]
}
