# Names of buckets are one world's: the project makes ours.
resource "google_storage_bucket" "blobs" {
  project                     = local.with.storage
  name                        = "${var.name}-${local.project}"
  location                    = local.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  # Its objects mean nothing without the database; the guard keeps both while clusters need them.
  force_destroy = true
  labels        = local.labels

  versioning {
    enabled = true
  }

  # The records can be had back as they were for so many days; so can what they name.
  lifecycle_rule {
    action {
      type = "Delete"
    }

    condition {
      days_since_noncurrent_time = var.recovery_days
      with_state                 = "ARCHIVED"
    }
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }

    condition {
      age = 1
    }
  }

  # Versions do what this does, and without a price for what came and went within a day.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  dynamic "encryption" {
    for_each = local.keys

    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [time_sleep.keys]
}
