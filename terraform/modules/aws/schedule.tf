data "aws_iam_policy_document" "scheduler_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

data "aws_iam_policy_document" "scheduler" {
  statement {
    actions   = ["lambda:InvokeFunction"]
    resources = [aws_lambda_alias.live["schedule"].arn]
  }
}

resource "aws_iam_role" "scheduler" {
  name                 = "${local.global_name}-scheduler"
  path                 = var.role_path
  assume_role_policy   = data.aws_iam_policy_document.scheduler_trust.json
  permissions_boundary = var.permissions_boundary
  tags                 = local.labels
}

resource "aws_iam_role_policy" "scheduler" {
  name   = "tick"
  role   = aws_iam_role.scheduler.id
  policy = data.aws_iam_policy_document.scheduler.json
}

# A failed or lost tick is not repeated: the next one catches up.
resource "aws_scheduler_schedule" "tick" {
  name                = "${var.name}-tick"
  description         = "Has Bellhop ${var.name} publish what is due"
  schedule_expression = "rate(1 minute)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live["schedule"].arn
    role_arn = aws_iam_role.scheduler.arn

    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
  }

  depends_on = [aws_iam_role_policy.scheduler]
}

resource "aws_lambda_function_event_invoke_config" "tick" {
  function_name                = aws_lambda_function.stage["schedule"].function_name
  qualifier                    = aws_lambda_alias.live["schedule"].name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
}
