# A bucket that is not empty cannot be destroyed, which ends Terraform's run. While clusters are
# registered, the schedule function keeps an object in this one. To skip the check, apply
# `destroy_with_clusters = true` first.
#
# It depends on all other resources, since Terraform destroys dependent resources first.
locals {
  guard = "${var.name}-${local.project}-clusters"
}

resource "google_storage_bucket" "guard" {
  project                     = local.with.storage
  name                        = local.guard
  location                    = local.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = var.destroy_with_clusters
  labels                      = local.labels

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  depends_on = [
    google_billing_budget.monthly,
    google_cloud_run_v2_service.ingest,
    google_cloud_run_v2_service_iam_member.ingest,
    google_cloud_scheduler_job.tick,
    google_eventarc_trigger.this,
    google_firestore_backup_schedule.daily,
    google_firestore_field.place,
    google_logging_metric.alerts,
    google_logging_metric.latency,
    google_logging_metric.lines,
    google_logging_metric.stages,
    google_logging_project_exclusion.own,
    google_logging_project_sink.own,
    google_logging_saved_query.this,
    google_monitoring_alert_policy.this,
    google_monitoring_dashboard.this,
    google_project_iam_member.clusters,
    google_project_iam_member.guard,
    google_project_iam_member.logs,
    google_project_iam_member.metrics,
    google_project_iam_member.new_secrets,
    google_pubsub_subscription.dead,
    google_pubsub_subscription.inbox,
    google_pubsub_subscription_iam_member.dead,
    google_pubsub_subscription_iam_member.postman,
    google_pubsub_topic_iam_member.publish,
    google_service_account_iam_member.postman,
  ]
}

# Of the project, with the bucket's name, so that it outlives a destroy that the bucket refused.
resource "google_project_iam_member" "guard" {
  project = local.project
  role    = google_project_iam_custom_role.this["blobs"].name
  member  = google_service_account.this["schedule"].member

  condition {
    title      = local.guard
    expression = "resource.name == \"projects/_/buckets/${local.guard}\" || resource.name.startsWith(\"projects/_/buckets/${local.guard}/objects/\")"
  }
}
