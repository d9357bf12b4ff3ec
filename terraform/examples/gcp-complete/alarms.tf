resource "google_monitoring_notification_channel" "email" {
  display_name = "bellhop-production-alarms"
  type         = "email"
  labels       = { email_address = var.email }
}
