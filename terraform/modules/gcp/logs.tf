locals {
  # The logs of the functions, and Cloud Run's own.
  lines = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(${join(" OR ", [for stage in keys(local.deployed) : "\"${var.name}-${stage}\""])})"

  # The project's own bucket, _Default, keeps lines for thirty days.
  own_bucket = var.log_retention_days == 30 ? 0 : 1
}

resource "google_logging_project_bucket_config" "own" {
  count = local.own_bucket

  project        = local.with.logging
  location       = local.region
  bucket_id      = var.name
  description    = "Lines of Bellhop ${var.name}"
  retention_days = var.log_retention_days
}

resource "google_logging_project_sink" "own" {
  count = local.own_bucket

  project                = local.project
  name                   = var.name
  description            = "Lines of Bellhop ${var.name}"
  destination            = "logging.googleapis.com/${google_logging_project_bucket_config.own[0].id}"
  filter                 = local.lines
  unique_writer_identity = true
}

# Lines in one bucket need not be paid for in the other.
resource "google_logging_project_exclusion" "own" {
  count = local.own_bucket

  project     = local.project
  name        = var.name
  description = "Lines of Bellhop ${var.name}, which have a bucket of their own"
  filter      = local.lines

  depends_on = [google_logging_project_sink.own]
}

# Counts of actions for the dashboard; an idle installation has none.
resource "google_logging_metric" "lines" {
  project          = local.with.logging
  name             = "${var.name}-done"
  description      = "Lines with the actions of Bellhop ${var.name}"
  filter           = "${local.lines} AND jsonPayload.what:*"
  label_extractors = { what = "EXTRACT(jsonPayload.what)" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    labels {
      key         = "what"
      value_type  = "STRING"
      description = "The action: `rang`, matched, applied, failed, missed …"
    }
  }
}
