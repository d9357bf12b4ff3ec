# An example with all options: CEL, settings, sizes, a network for private API servers, GKE clusters, a
# key of one's own, who may send, events of Google that count, and who gets alarms.
module "bellhop" {
  source = "git::https://git.example.com/bellhop.git//terraform/modules/gcp?ref=v0.1.0"

  name     = "bellhop-production"
  labels   = { team = "platform", environment = "production" }
  packages = var.packages

  cel    = true
  charts = true

  settings = {
    attempts       = 8
    sweep_interval = 600
    ledger_days    = 30
  }

  functions = {
    ingest = { memory = 1024, warm = 1 }
    deploy = { memory = 2048, timeout = 180 }
  }

  # Fits a new project: raise it with Cloud Run's quota, and the subnetwork with it.
  instances = 10

  network = {
    network    = google_compute_network.this.name
    subnetwork = google_compute_subnetwork.functions.name
    tags       = ["bellhop"]
  }

  gke_clusters = ["projects/${var.project}/locations/*"]
  kms_key      = local.kms_key

  configuration_cluster = true

  ingest_allow = ["203.0.113.0/24"]

  event_rules = {
    uploads = {
      cluster  = "fleet/source"
      matching = { type = "google.cloud.storage.object.v1.finalized", bucket = google_storage_bucket.uploads.name }
    }
  }

  log_retention_days     = 90
  recovery_days          = 60
  deletion_protection    = var.deletion_protection
  destroy_with_clusters  = var.destroy_with_clusters
  notifications          = [google_monitoring_notification_channel.email.name]
  oldest_message_minutes = 15
}

output "bellhop" {
  description = "The installation, as `bellhop context add NAME --gcp -` reads it."
  value       = module.bellhop.bellhop
}
