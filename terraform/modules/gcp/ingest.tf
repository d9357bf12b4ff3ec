locals {
  ingress = { anywhere = "ALLOW_ALL", balancer = "ALLOW_INTERNAL_AND_GCLB", network = "ALLOW_INTERNAL_ONLY" }[var.ingest_from]

  # Of a service's addresses this is the one that is known before the service is there.
  ingest_url = "https://${var.name}-ingest-${local.number}.${local.region}.run.app"
}

# Anybody may call it: what counts is the token that each cluster's senders show.
resource "google_cloud_run_v2_service_iam_member" "ingest" {
  for_each = var.ingest_invokers

  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage["ingest"].name
  role     = "roles/run.invoker"
  member   = each.key
}
