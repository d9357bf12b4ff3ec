# Services that this example's own resources need; the module enables its own. An enabled service
# refuses calls until all of Google's servers know, and no call says when they do.
resource "google_project_service" "this" {
  for_each = toset(["cloudkms", "compute", "monitoring", "storage"])

  project            = var.project
  service            = "${each.key}.googleapis.com"
  disable_on_destroy = false
}

resource "time_sleep" "services" {
  create_duration = "60s"
  triggers        = { for service, on in google_project_service.this : service => on.project }
}
