# A limit for what the resources with this installation's tag cost. AWS counts by a tag once it is
# activated as a cost allocation tag of the account.
resource "aws_budgets_budget" "monthly" {
  count = var.monthly_budget == null ? 0 : 1

  name         = local.global_name
  budget_type  = "COST"
  time_unit    = "MONTHLY"
  limit_amount = tostring(var.monthly_budget)
  limit_unit   = "USD"
  tags         = local.labels

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:bellhop$%s", var.name)]
  }

  # AWS takes one topic for each.
  dynamic "notification" {
    for_each = length(var.notifications) > 0 ? ["ACTUAL", "FORECASTED"] : []

    content {
      notification_type         = notification.value
      comparison_operator       = "GREATER_THAN"
      threshold                 = 100
      threshold_type            = "PERCENTAGE"
      subscriber_sns_topic_arns = slice(sort(var.notifications), 0, 1)
    }
  }
}
