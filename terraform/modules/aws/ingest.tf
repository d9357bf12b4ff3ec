locals {
  ingest_url = var.domain_name == null ? aws_apigatewayv2_api.ingest.api_endpoint : "https://${var.domain_name}"
}

# An HTTP API, and no function URL: what lets everybody call a function's URL lets everybody invoke
# the function too, with an event that says any address, unless a condition is written that this
# provider does not know before version 6.29.
resource "aws_apigatewayv2_api" "ingest" {
  name          = "${var.name}-ingest"
  description   = "Where clusters send their events to Bellhop ${var.name}"
  protocol_type = "HTTP"
  tags          = local.labels
}

resource "aws_apigatewayv2_integration" "ingest" {
  api_id                 = aws_apigatewayv2_api.ingest.id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_alias.live["ingest"].invoke_arn
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "ingest" {
  api_id    = aws_apigatewayv2_api.ingest.id
  route_key = "$default"
  target    = "integrations/${aws_apigatewayv2_integration.ingest.id}"
}

resource "aws_apigatewayv2_stage" "ingest" {
  api_id      = aws_apigatewayv2_api.ingest.id
  name        = "$default"
  auto_deploy = true
  tags        = local.labels

  default_route_settings {
    throttling_rate_limit  = var.ingest_rate
    throttling_burst_limit = var.ingest_rate
  }

  # No path, query or header: the path of an API server's webhook is a secret, as its token is.
  dynamic "access_log_settings" {
    for_each = aws_cloudwatch_log_group.ingest

    content {
      destination_arn = access_log_settings.value.arn
      format = jsonencode({
        requestId        = "$context.requestId"
        time             = "$context.requestTime"
        ip               = "$context.identity.sourceIp"
        method           = "$context.httpMethod"
        status           = "$context.status"
        responseBytes    = "$context.responseLength"
        latency          = "$context.responseLatency"
        integrationError = "$context.integrationErrorMessage"
      })
    }
  }
}

resource "aws_lambda_permission" "ingest" {
  statement_id  = "api"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.stage["ingest"].function_name
  qualifier     = aws_lambda_alias.live["ingest"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.ingest.execution_arn}/*"
}

# The API answers under its own address, too: clusters registered before know that one.
resource "aws_apigatewayv2_domain_name" "ingest" {
  count = var.domain_name == null ? 0 : 1

  domain_name = var.domain_name
  tags        = local.labels

  domain_name_configuration {
    certificate_arn = var.certificate_arn
    endpoint_type   = "REGIONAL"
    security_policy = "TLS_1_2"
  }
}

resource "aws_apigatewayv2_api_mapping" "ingest" {
  count = var.domain_name == null ? 0 : 1

  api_id      = aws_apigatewayv2_api.ingest.id
  domain_name = aws_apigatewayv2_domain_name.ingest[0].id
  stage       = aws_apigatewayv2_stage.ingest.name
}
