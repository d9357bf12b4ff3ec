# A limit for what the project costs, since much of it has no label. Recipients of the alarms get the
# notifications of the budget, and so do administrators of the billing account.
resource "google_billing_budget" "monthly" {
  count = var.monthly_budget == null ? 0 : 1

  billing_account = var.monthly_budget.billing_account
  display_name    = "Bellhop ${var.name}"

  budget_filter {
    projects        = ["projects/${local.number}"]
    calendar_period = "MONTH"
  }

  # In the currency of the billing account.
  amount {
    specified_amount {
      units = tostring(var.monthly_budget.amount)
    }
  }

  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "CURRENT_SPEND"
  }

  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  # A budget takes five channels.
  dynamic "all_updates_rule" {
    for_each = length(var.notifications) > 0 ? [1] : []

    content {
      monitoring_notification_channels = slice(sort(var.notifications), 0, min(5, length(var.notifications)))
    }
  }

  depends_on = [time_sleep.services]
}
