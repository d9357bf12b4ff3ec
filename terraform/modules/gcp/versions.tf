terraform {
  # Write-only arguments keep the sealing key out of the state.
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.31, < 9"
    }

    # Only for the accounts of Google's services: `google` has no resource that creates them.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = ">= 7.31, < 9"
    }

    time = {
      source  = "hashicorp/time"
      version = ">= 0.9, < 1"
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
    contains(local.agents, "eventarc") ? ["eventarc"] : [],
    var.monthly_budget == null ? [] : ["billingbudgets"],
    var.kms_key == null ? [] : ["cloudkms"],
    # Google counts a call by the project of who calls.
    length(var.gke_clusters) > 0 ? ["connectgateway", "container", "gkehub"] : [],
  ))

  project            = local.project
  service            = "${each.key}.googleapis.com"
  disable_on_destroy = false
}

# An enabled service refuses calls until all of its servers know, and no call says when they do.
resource "time_sleep" "services" {
  create_duration = "60s"
  triggers        = { for service, on in google_project_service.this : service => on.project }
}

# The account by which a service of Google acts in this project. Google creates it when the service
# first needs it, and refuses a grant to an account that does not exist.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = setsubtract(local.agents, ["storage"])

  project = local.with[each.key]
  service = "${each.key}.googleapis.com"
}

# Cloud Storage's is created when it is read.
data "google_storage_project_service_account" "agent" {
  for_each = setintersection(local.agents, ["storage"])

  project = local.with[each.key]

  depends_on = [time_sleep.services]
}

locals {
  version = "0.1.0"
  project = data.google_client_config.here.project
  number  = data.google_project.here.number
  region  = data.google_client_config.here.region
  labels  = merge(var.labels, { bellhop = var.name })

  # The project, for what can be made in it only once that service is on.
  with = time_sleep.services.triggers

  # Google says that a grant takes two minutes as a rule, and seven or more at times.
  propagation = "180s"

  agents = toset(concat(
    ["pubsub"],
    length(var.event_rules) > 0 ? ["eventarc"] : [],
    length(local.storage_rules) > 0 ? ["storage"] : [],
    keys(local.key_agents),
  ))
}
