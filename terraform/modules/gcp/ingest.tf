locals {
  # In the words of functions, and in those of services.
  ingress = {
    anywhere = ["ALLOW_ALL", "INGRESS_TRAFFIC_ALL"]
    balancer = ["ALLOW_INTERNAL_AND_GCLB", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"]
    network  = ["ALLOW_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_ONLY"]
  }[var.ingest_from]

  # Of a service's addresses this is the one that is known before the service is there.
  ingest_url = "https://${var.name}-ingest-${local.number}.${local.region}.run.app"

  # A service can turn Cloud Run's own check off; a function cannot, and a service builds no image. So
  # a function that nobody may call builds the image, and the service runs what that function would.
  unchecked = toset(length(var.ingest_invokers) == 0 ? ["ingest"] : [])
  built     = { for each, service in data.google_cloud_run_v2_service.build : each => service.template[0].containers[0] }
}

# Callers with an identity of Google's. The token that each cluster's senders show counts in any case.
resource "google_cloud_run_v2_service_iam_member" "ingest" {
  for_each = var.ingest_invokers

  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage["ingest"].name
  role     = "roles/run.invoker"
  member   = each.key
}

data "google_cloud_run_v2_service" "build" {
  for_each = local.unchecked

  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage[each.key].name

  # It is read after a new image was built.
  depends_on = [google_cloudfunctions2_function.stage]
}

resource "google_cloud_run_v2_service" "ingest" {
  for_each = local.unchecked

  project              = local.with.run
  location             = local.region
  name                 = "${var.name}-${each.key}"
  description          = "Bellhop ${var.name}: ${each.key}"
  labels               = local.labels
  ingress              = local.ingress[1]
  invoker_iam_disabled = true
  deletion_protection  = false

  template {
    service_account                  = google_service_account.this[each.key].email
    timeout                          = "${local.functions[each.key].timeout}s"
    max_instance_request_concurrency = local.functions[each.key].concurrency
    encryption_key                   = google_artifact_registry_repository.images.kms_key_name
    # A new package is a new revision, even if its image has the name of the one before.
    labels = merge(local.labels, { build = local.build_id })

    scaling {
      min_instance_count = local.functions[each.key].warm
      max_instance_count = local.functions[each.key].instances
    }

    containers {
      image          = local.built[each.key].image
      base_image_uri = local.built[each.key].base_image_uri == "" ? null : local.built[each.key].base_image_uri

      resources {
        limits   = { cpu = "1", memory = "${local.functions[each.key].memory}Mi" }
        cpu_idle = true
      }

      dynamic "env" {
        for_each = merge(local.variables[each.key], { FUNCTION_TARGET = "handle" })

        content {
          name  = env.key
          value = env.value
        }
      }
    }
  }
}
