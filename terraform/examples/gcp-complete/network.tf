# Stands for the network that your private API servers are in. Calls to Google's services do not go
# through it.
resource "google_compute_network" "this" {
  name                    = "bellhop-production"
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "functions" {
  name          = "bellhop-production"
  network       = google_compute_network.this.id
  ip_cidr_range = "10.20.0.0/24"
  region        = var.region
}
