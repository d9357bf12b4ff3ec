locals {
  # The logs of the functions, and Cloud Run's own.
  lines = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(${join(" OR ", [for stage in keys(local.deployed) : "\"${var.name}-${stage}\""])})"

  # The project's own bucket, _Default, keeps lines for thirty days, under a key of Google's.
  own_bucket = var.log_retention_days == 30 && var.kms_key == null ? 0 : 1
}

resource "google_logging_project_bucket_config" "own" {
  count = local.own_bucket

  project        = local.with.logging
  location       = local.region
  bucket_id      = var.name
  description    = "Lines of Bellhop ${var.name}"
  retention_days = var.log_retention_days

  dynamic "cmek_settings" {
    for_each = local.keys

    content {
      kms_key_name = cmek_settings.value
    }
  }

  depends_on = [time_sleep.keys]

  # Cloud Logging takes a key only when it creates a bucket.
  lifecycle {
    ignore_changes = [cmek_settings]
  }
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

# Each tick writes these lines; a healthy fleet has none.
resource "google_logging_metric" "alerts" {
  project     = local.with.logging
  name        = "${var.name}-alerts"
  description = "Alerts of Bellhop ${var.name}: a line a minute while a cluster or a promotion needs attention"
  filter      = "${local.lines} AND jsonPayload.message=\"Something needs attention\""

  label_extractors = {
    alert   = "EXTRACT(jsonPayload.alert)"
    cluster = "EXTRACT(jsonPayload.cluster)"
  }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    labels {
      key         = "alert"
      value_type  = "STRING"
      description = "What is so: ClustersUnreachable, ClustersSilent, CredentialsExpiring, DeletionsHeld, PromotionsStalled"
    }

    labels {
      key         = "cluster"
      value_type  = "STRING"
      description = "The cluster; empty for those beyond `named_clusters`, and for promotions"
    }
  }
}

resource "google_logging_metric" "latency" {
  project         = local.with.logging
  name            = "${var.name}-latency"
  description     = "Milliseconds from a change in a cluster until Bellhop ${var.name} applied a profile for it"
  filter          = "${local.lines} AND jsonPayload.what=\"applied\" AND jsonPayload.since_ring_ms>=0"
  value_extractor = "EXTRACT(jsonPayload.since_ring_ms)"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = "ms"
  }

  # From 25 ms to 14 minutes: each bucket ends a quarter higher.
  bucket_options {
    exponential_buckets {
      num_finite_buckets = 47
      growth_factor      = 1.25
      scale              = 25
    }
  }
}

resource "google_logging_metric" "stages" {
  project         = local.with.logging
  name            = "${var.name}-promotion-stages"
  description     = "Seconds from when a stage of a promotion of Bellhop ${var.name} began a release until that passed it"
  filter          = "${local.lines} AND jsonPayload.what=\"promoted\" AND jsonPayload.stage_seconds>=0"
  value_extractor = "EXTRACT(jsonPayload.stage_seconds)"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = "s"
  }

  # From a minute to four months: each bucket ends half higher.
  bucket_options {
    exponential_buckets {
      num_finite_buckets = 30
      growth_factor      = 1.5
      scale              = 60
    }
  }
}
