output "bellhop" {
  description = "The installation, as `bellhop context add NAME --gcp -` reads it."
  value = {
    kind              = "gcp"
    version           = local.version
    project           = local.project
    region            = local.region
    database          = google_firestore_database.records.name
    bucket            = google_storage_bucket.blobs.name
    topics            = { for inbox, topic in google_pubsub_topic.inbox : inbox => topic.name }
    secrets           = var.name
    secret_region     = local.secret_region
    kms_key           = var.kms_key == null ? "" : var.kms_key
    key_secret        = google_secret_manager_secret.key["sealing"].secret_id
    ingest_key_secret = google_secret_manager_secret.key["ingest"].secret_id
    ingest_url        = local.ingest_url
    services          = { for stage in keys(google_cloudfunctions2_function.stage) : stage => "${var.name}-${stage}" }
    accounts          = { for stage in keys(local.rights) : stage => google_service_account.this[stage].email }
    logs              = local.own_bucket == 0 ? "projects/${local.project}" : "${google_logging_project_bucket_config.own[0].id}/views/_AllLogs"
  }
}
