terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.31, < 9"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}

variable "project" {
  description = "Google Cloud project of the installation."
  type        = string
}

variable "region" {
  description = "Google Cloud region of the installation."
  type        = string
  default     = "europe-west1"
}
