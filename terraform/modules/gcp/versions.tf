terraform {
  # Write-only arguments keep the sealing key out of the state.
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 8.7"
    }
  }
}

data "google_client_config" "here" {
  lifecycle {
    postcondition {
      condition     = self.project != null && self.region != null
      error_message = "The provider needs a project and a region: provider \"google\" { project = …, region = … }."
    }
  }
}

data "google_project" "here" {}

# Services that must be enabled in a project before any resource can be created. Others may need
# them, too: a destroy disables none.
resource "google_project_service" "this" {
  for_each = toset(concat([
    "artifactregistry", "cloudbuild", "cloudfunctions", "cloudscheduler", "firestore", "iam",
    "logging", "monitoring", "pubsub", "run", "secretmanager", "storage",
    ],
    length(var.event_rules) > 0 ? ["eventarc"] : [],
    var.monthly_budget == null ? [] : ["billingbudgets"],
    # Google counts a call by the project of who calls.
    length(var.gke_clusters) > 0 ? ["connectgateway", "container", "gkehub"] : [],
  ))

  project            = local.project
  service            = "${each.key}.googleapis.com"
  disable_on_destroy = false
}

locals {
  version = "0.1.0"
  project = data.google_client_config.here.project
  number  = data.google_project.here.number
  region  = data.google_client_config.here.region
  labels  = merge(var.labels, { bellhop = var.name })

  # The project, for what can be made in it only once that service is on.
  with = { for service, on in google_project_service.this : service => on.project }
}
