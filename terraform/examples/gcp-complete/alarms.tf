resource "google_monitoring_notification_channel" "email" {
  project      = time_sleep.services.triggers.monitoring
  display_name = "bellhop-production-alarms"
  type         = "email"
  labels       = { email_address = var.email }
}
