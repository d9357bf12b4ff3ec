resource "google_cloud_run_v2_service_iam_member" "tick" {
  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage["schedule"].name
  role     = "roles/run.invoker"
  member   = google_service_account.this["tick"].member
}

# A failed or lost tick is not repeated: the next one catches up.
resource "google_cloud_scheduler_job" "tick" {
  project          = local.with.cloudscheduler
  region           = local.region
  name             = "${var.name}-tick"
  description      = "Has Bellhop ${var.name} publish what is due"
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "${max(15, local.functions.schedule.timeout)}s"

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "${local.addresses.schedule}/"

    oidc_token {
      service_account_email = google_service_account.this["tick"].email
      audience              = local.addresses.schedule
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.tick]
}
