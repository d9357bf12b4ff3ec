# Stands for the network that your private API servers are in. Calls to Google's services do not go
# through it.
resource "google_compute_network" "this" {
  project                 = time_sleep.services.triggers.compute
  name                    = "bellhop-production"
  auto_create_subnetworks = false
}

# Two addresses for each instance of deploy, sweep and charts, and as many again while a new revision
# replaces another; Google asks for 64 at least. After a destroy of the functions it keeps them for one
# or two hours, and the subnetwork with them.
resource "google_compute_subnetwork" "functions" {
  name          = "bellhop-production"
  network       = google_compute_network.this.id
  ip_cidr_range = "10.20.0.0/24"
  region        = var.region
}
