locals {
  private = var.ingest_from == "network"

  ingest_url = (
    var.domain_name != null ? "https://${var.domain_name}" :
    local.private ? one([for each in aws_api_gateway_rest_api.ingest : "https://${each.id}-${sort(var.ingest_endpoints)[0]}.execute-api.${local.region}.${data.aws_partition.here.dns_suffix}/${local.ingest_stage}"]) :
    one(aws_apigatewayv2_api.ingest[*].api_endpoint)
  )

  # A part of the private API's address.
  ingest_stage = "live"

  # CloudWatch names the two kinds of API, and their failures, differently.
  ingest_metric = one(concat(
    [for each in aws_apigatewayv2_api.ingest : { dimension = "ApiId", value = each.id, failures = "5xx", refusals = "4xx" }],
    [for each in aws_api_gateway_rest_api.ingest : { dimension = "ApiName", value = each.name, failures = "5XXError", refusals = "4XXError" }],
  ))

  # One execution refuses 50 requests a second: each reads two records at most, in 20 ms with 512 MB.
  # Ingest has those that are reserved for it, or those that queues and rules leave, but one for the
  # schedule.
  ingest_executions = local.functions.ingest.concurrency > 0 ? local.functions.ingest.concurrency : local.spared - 1
  highest_rate      = 50 * local.ingest_executions
  ingest_rate       = coalesce(var.ingest_rate, min(500, local.highest_rate))
}

# An HTTP API, and no function URL: what lets everybody call a function's URL lets everybody invoke
# the function too, with an event that says any address, unless a condition is written that this
# provider does not know before version 6.29.
resource "aws_apigatewayv2_api" "ingest" {
  count = local.private ? 0 : 1

  name                         = "${var.name}-ingest"
  description                  = "Where clusters send their events to Bellhop ${var.name}"
  protocol_type                = "HTTP"
  disable_execute_api_endpoint = var.ingest_from == "domain"
  tags                         = local.labels
}

resource "aws_apigatewayv2_integration" "ingest" {
  count = local.private ? 0 : 1

  api_id                 = aws_apigatewayv2_api.ingest[0].id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_alias.live["ingest"].invoke_arn
  payload_format_version = "2.0"
}

resource "aws_apigatewayv2_route" "ingest" {
  count = local.private ? 0 : 1

  api_id    = aws_apigatewayv2_api.ingest[0].id
  route_key = "$default"
  target    = "integrations/${aws_apigatewayv2_integration.ingest[0].id}"
}

resource "aws_apigatewayv2_stage" "ingest" {
  count = local.private ? 0 : 1

  api_id      = aws_apigatewayv2_api.ingest[0].id
  name        = "$default"
  auto_deploy = true
  tags        = local.labels

  default_route_settings {
    throttling_rate_limit  = local.ingest_rate
    throttling_burst_limit = local.ingest_rate
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
  source_arn    = "${one(concat(aws_apigatewayv2_api.ingest[*].execution_arn, aws_api_gateway_rest_api.ingest[*].execution_arn))}/*"
}

# With `ingest_from = "anywhere"` the API answers under its own address, too: clusters registered
# before know that one.
resource "aws_apigatewayv2_domain_name" "ingest" {
  count = var.domain_name == null ? 0 : 1

  domain_name = var.domain_name
  tags        = local.labels

  domain_name_configuration {
    certificate_arn = var.certificate_arn
    endpoint_type   = "REGIONAL"
    security_policy = "TLS_1_2"
  }

  dynamic "mutual_tls_authentication" {
    for_each = var.ingest_truststore[*]

    content {
      truststore_uri     = mutual_tls_authentication.value.uri
      truststore_version = mutual_tls_authentication.value.version
    }
  }
}

resource "aws_apigatewayv2_api_mapping" "ingest" {
  count = var.domain_name == null ? 0 : 1

  api_id      = aws_apigatewayv2_api.ingest[0].id
  domain_name = aws_apigatewayv2_domain_name.ingest[0].id
  stage       = aws_apigatewayv2_stage.ingest[0].name
}

# An HTTP API cannot be private, so `ingest_from = "network"` makes a REST API: nothing on the
# Internet leads to it, and its policy lets in only what comes through your VPC endpoints.
resource "aws_api_gateway_rest_api" "ingest" {
  count = local.private ? 1 : 0

  name               = "${var.name}-ingest"
  description        = "Where clusters send their events to Bellhop ${var.name}"
  binary_media_types = ["*/*"]
  tags               = local.labels

  endpoint_configuration {
    types            = ["PRIVATE"]
    vpc_endpoint_ids = var.ingest_endpoints
  }
}

resource "aws_api_gateway_rest_api_policy" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.ingest[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = "*"
      Action    = "execute-api:Invoke"
      Resource  = "${aws_api_gateway_rest_api.ingest[0].execution_arn}/*"
      Condition = { StringEquals = { "aws:SourceVpce" = var.ingest_endpoints } }
    }]
  })
}

resource "aws_api_gateway_resource" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.ingest[0].id
  parent_id   = aws_api_gateway_rest_api.ingest[0].root_resource_id
  path_part   = "{proxy+}"
}

# The function asks each request for its sender's token.
resource "aws_api_gateway_method" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id   = aws_api_gateway_rest_api.ingest[0].id
  resource_id   = aws_api_gateway_resource.ingest[0].id
  http_method   = "ANY"
  authorization = "NONE"
}

resource "aws_api_gateway_integration" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id             = aws_api_gateway_rest_api.ingest[0].id
  resource_id             = aws_api_gateway_resource.ingest[0].id
  http_method             = aws_api_gateway_method.ingest[0].http_method
  type                    = "AWS_PROXY"
  integration_http_method = "POST"
  uri                     = aws_lambda_alias.live["ingest"].invoke_arn
}

# A copy of all the above, which answers; AWS refuses one of an API without a policy.
resource "aws_api_gateway_deployment" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.ingest[0].id

  triggers = {
    content = sha256("${aws_api_gateway_rest_api_policy.ingest[0].policy} ${aws_api_gateway_integration.ingest[0].uri}")
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_api_gateway_stage" "ingest" {
  # checkov:skip=CKV_AWS_76:Its log needs a role that the account has once for all APIs of the region.
  # checkov:skip=CKV2_AWS_4:Its log needs a role that the account has once for all APIs of the region.
  count = local.private ? 1 : 0

  rest_api_id   = aws_api_gateway_rest_api.ingest[0].id
  deployment_id = aws_api_gateway_deployment.ingest[0].id
  stage_name    = local.ingest_stage
  tags          = local.labels

  xray_tracing_enabled = var.tracing
}

resource "aws_api_gateway_method_settings" "ingest" {
  count = local.private ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.ingest[0].id
  stage_name  = aws_api_gateway_stage.ingest[0].stage_name
  method_path = "*/*"

  settings {
    throttling_rate_limit  = local.ingest_rate
    throttling_burst_limit = local.ingest_rate
  }
}
